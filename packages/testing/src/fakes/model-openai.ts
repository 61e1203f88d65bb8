import { type OpenAiRules, openAiMistake } from './model-openai-rules.ts'
import { type FakeJson, type ModelScript, piecesOf, type Said, type ScriptedAnswer } from './model-script.ts'
import { eventStream, type FakeModel, json, startFakeModel } from './model-server.ts'

export interface FakeOpenAiOptions extends OpenAiRules {
  /** A request without this key is a 401; any key will do when absent. */
  apiKey?: string
}

const USAGE = { prompt_tokens: 11, completion_tokens: 7, total_tokens: 18 }

/** OpenAI's Chat Completions API with a scripted model behind it. Its base is `<url>/v1`. */
export const fakeOpenAi = (script: ModelScript, options: FakeOpenAiOptions = {}): Promise<FakeModel> =>
  startFakeModel(
    {
      path: '/v1/chat/completions',
      refuse(body, { authorization }) {
        if (options.apiKey !== undefined && authorization !== `Bearer ${options.apiKey}`)
          return refusal(401, `Incorrect API key provided: ${authorization ?? 'none'}.`, 'invalid_api_key')
        const mistake = openAiMistake(body, options)
        return mistake === undefined ? undefined : refusal(400, mistake, null)
      },
      render: (answer, body, round) =>
        body.stream === true
          ? eventStream(openAiStream(answer, body, round))
          : json(200, completion(answer, body, round)),
    },
    script,
  )

function refusal(status: number, message: string, code: string | null) {
  return { status, message, body: { error: { message, type: 'invalid_request_error', param: null, code } } }
}

/** The answer as the frames of a stream. */
export function openAiStream(answer: ScriptedAnswer, body: FakeJson, round = 0): string {
  const withUsage = (body.stream_options as FakeJson | undefined)?.include_usage === true && answer.usage !== null
  const head = headOf(body, round, 'chat.completion.chunk')
  const chunk = (delta: FakeJson, finish_reason: string | null) => ({
    ...head,
    choices: [{ index: 0, delta, logprobs: null, finish_reason }],
    ...(withUsage && { usage: null }),
  })
  let calls = 0
  const chunks = [
    chunk({ role: 'assistant', content: '', refusal: null }, null),
    ...answer.says.flatMap((said) =>
      deltasOf(said, answer.piece ?? 5, 'call' in said ? calls++ : 0).map((delta) => chunk(delta, null)),
    ),
    chunk({}, finishOf(answer)),
    ...(withUsage ? [{ ...head, choices: [], usage: answer.usage ?? USAGE }] : []),
  ]
  return `${chunks.map((one) => `data: ${JSON.stringify(one)}\n\n`).join('')}data: [DONE]\n\n`
}

function deltasOf(said: Said, piece: number, index: number): FakeJson[] {
  if ('text' in said) return piecesOf(said.text, piece).map((content) => ({ content }))
  if ('thinking' in said) return piecesOf(said.thinking, piece).map((text) => ({ reasoning_content: text }))
  if ('redacted' in said) throw new Error('OpenAI has no redacted thinking')
  const { id, name, type = 'function' } = said.call
  return [
    { tool_calls: [{ index, id, type, function: { name, arguments: '' } }] },
    ...piecesOf(argumentsOf(said.call), piece).map((text) => ({
      tool_calls: [{ index, function: { arguments: text } }],
    })),
  ]
}

const argumentsOf = ({ input, text }: { input: FakeJson; text?: string }): string => text ?? JSON.stringify(input)

/** The answer whole. */
export function completion(answer: ScriptedAnswer, body: FakeJson, round = 0): FakeJson {
  const calls = answer.says.flatMap((said) => ('call' in said ? [said.call] : []))
  const text = answer.says.flatMap((said) => ('text' in said ? said.text : [])).join('')
  const thinking = answer.says.flatMap((said) => ('thinking' in said ? said.thinking : [])).join('')
  const message = {
    role: 'assistant',
    content: text === '' && calls.length > 0 ? null : text,
    refusal: null,
    ...(thinking && { reasoning_content: thinking }),
    ...(calls.length > 0 && {
      tool_calls: calls.map((call) => ({
        id: call.id,
        type: call.type ?? 'function',
        function: { name: call.name, arguments: argumentsOf(call) },
      })),
    }),
  }
  return {
    ...headOf(body, round, 'chat.completion'),
    choices: [{ index: 0, message, logprobs: null, finish_reason: finishOf(answer) }],
    ...(answer.usage !== null && { usage: answer.usage ?? USAGE }),
  }
}

const headOf = ({ model }: FakeJson, round: number, object: string): FakeJson => ({
  id: `chatcmpl-up-${round + 1}`,
  object,
  created: 1_792_000_000 + round,
  model,
  system_fingerprint: 'fp_fake',
})

const finishOf = ({ finish, says }: ScriptedAnswer): string =>
  finish ?? (says.some((said) => 'call' in said) ? 'tool_calls' : 'stop')
