import type { FakeFiles } from './model-files.ts'
import { openAiFilesDoor } from './model-openai-files.ts'
import { openAiResponsesMistake } from './model-openai-responses-rules.ts'
import { type FakeJson, type ModelScript, piecesOf, type Said, type ScriptedAnswer } from './model-script.ts'
import { eventStream, type FakeModel, json, type Refusal, startFakeModel } from './model-server.ts'

export interface FakeOpenAiResponsesOptions {
  /** A request without this key is a 401; any key will do when absent. */
  apiKey?: string
}

const USAGE = {
  input_tokens: 11,
  input_tokens_details: { cached_tokens: 0, cache_write_tokens: 0 },
  output_tokens: 7,
  output_tokens_details: { reasoning_tokens: 0 },
  total_tokens: 18,
}

/** OpenAI's Responses API, which keeps no answer, with a scripted model behind it, and its files. Its base is `<url>/v1`. */
export const fakeOpenAiResponses = async (
  script: ModelScript,
  options: FakeOpenAiResponsesOptions = {},
): Promise<FakeModel & { files: FakeFiles }> => {
  const encrypted = new Set<string>()
  const door = openAiFilesDoor(options.apiKey)
  const { files } = door
  const model = await startFakeModel(
    {
      files: door,
      path: '/v1/responses',
      refuse(body, { authorization }) {
        if (options.apiKey !== undefined && authorization !== `Bearer ${options.apiKey}`)
          return refusal(401, `Incorrect API key provided: ${authorization ?? 'none'}.`, 'invalid_api_key')
        const mistake = openAiResponsesMistake(body, { encrypted, files })
        return mistake === undefined ? undefined : refusal(400, mistake, null)
      },
      render(answer, body, round) {
        for (const { encrypted_content: given } of itemsOf(answer, body, round)) if (given) encrypted.add(String(given))
        return body.stream === true
          ? eventStream(openAiResponsesStream(answer, body, round))
          : json(200, responseOf(answer, body, round))
      },
    },
    script,
  )
  return Object.assign(model, { files })
}

function refusal(status: number, message: string, code: string | null): Refusal {
  return { status, message, body: { error: { message, type: 'invalid_request_error', param: null, code } } }
}

/** The answer as the events of a stream. */
export function openAiResponsesStream(answer: ScriptedAnswer, body: FakeJson, round = 0): string {
  const response = responseOf(answer, body, round)
  const { usage: _uncounted, ...begun }: FakeJson = {
    ...response,
    status: 'in_progress',
    output: [],
    incomplete_details: null,
  }
  const events: FakeJson[] = [
    { type: 'response.created', response: begun },
    { type: 'response.in_progress', response: begun },
    ...(response.output as FakeJson[]).flatMap((item, output_index) =>
      eventsOf(item, answer, output_index).map((event) => ({ ...event, output_index })),
    ),
    { type: `response.${String(response.status)}`, response },
  ]
  return events
    .map(
      (event, sequence_number) =>
        `event: ${String(event.type)}\ndata: ${JSON.stringify({ ...event, sequence_number })}\n\n`,
    )
    .join('')
}

function eventsOf(item: FakeJson, { piece = 5, native = [] }: ScriptedAnswer, at: number): FakeJson[] {
  const inner = innerEvents(item, piece) ?? native[at]?.events ?? []
  const done = { type: 'response.output_item.done', item }
  return [
    { type: 'response.output_item.added', item: begunItem(item) },
    ...inner.map((event) => ({ item_id: item.id, ...event })),
    done,
  ]
}

function begunItem(item: FakeJson): FakeJson {
  const { encrypted_content: _unfinished, ...rest } = item
  const begun = 'status' in rest ? { ...rest, status: 'in_progress' } : rest
  if (item.type === 'message') return { ...begun, content: [] }
  if (item.type === 'function_call') return { ...begun, arguments: '' }
  return item.type === 'reasoning' ? { ...begun, summary: [] } : begun
}

/** Undefined for items whose events only the script knows. */
function innerEvents(item: FakeJson, piece: number): FakeJson[] | undefined {
  switch (item.type) {
    case 'message': {
      const [part] = item.content as [FakeJson]
      const text = String(part.text)
      const at = { content_index: 0 }
      return [
        { type: 'response.content_part.added', ...at, part: { ...part, text: '', annotations: [] } },
        ...piecesOf(text, piece).map((delta) => ({ type: 'response.output_text.delta', ...at, delta, logprobs: [] })),
        ...(part.annotations as FakeJson[]).map((annotation, annotation_index) => ({
          type: 'response.output_text.annotation.added',
          ...at,
          annotation_index,
          annotation,
        })),
        { type: 'response.output_text.done', ...at, text, logprobs: [] },
        { type: 'response.content_part.done', ...at, part },
      ]
    }
    case 'function_call': {
      const { arguments: args, name } = item
      return [
        ...piecesOf(String(args), piece).map((delta) => ({ type: 'response.function_call_arguments.delta', delta })),
        { type: 'response.function_call_arguments.done', name, arguments: args },
      ]
    }
    case 'reasoning': {
      const [part] = item.summary as (FakeJson | undefined)[]
      if (!part) return []
      const at = { summary_index: 0 }
      return [
        { type: 'response.reasoning_summary_part.added', ...at, part: { ...part, text: '' } },
        ...piecesOf(String(part.text), piece).map((delta) => ({
          type: 'response.reasoning_summary_text.delta',
          ...at,
          delta,
        })),
        { type: 'response.reasoning_summary_text.done', ...at, text: part.text },
        { type: 'response.reasoning_summary_part.done', ...at, part },
      ]
    }
    default:
      return undefined
  }
}

function responseOf(answer: ScriptedAnswer, body: FakeJson, round: number): FakeJson {
  const { finish, usage } = answer
  return {
    id: `resp_up_${round + 1}`,
    object: 'response',
    created_at: 1_792_000_000 + round,
    status: finish === undefined ? 'completed' : 'incomplete',
    error: null,
    incomplete_details: finish === undefined ? null : { reason: finish },
    instructions: body.instructions ?? null,
    model: body.model,
    output: itemsOf(answer, body, round),
    parallel_tool_calls: body.parallel_tool_calls ?? true,
    previous_response_id: null,
    store: body.store ?? true,
    tool_choice: body.tool_choice ?? 'auto',
    tools: body.tools ?? [],
    ...(usage !== null && { usage: usage ?? USAGE }),
  }
}

function itemsOf({ says, native = [], finish }: ScriptedAnswer, body: FakeJson, round: number): FakeJson[] {
  const encrypts = ((body.include ?? []) as string[]).includes('reasoning.encrypted_content')
  const last = says.length - 1
  return [
    ...native.map(({ item }) => item),
    ...says.map((said, i) =>
      itemOf(said, `${round + 1}_${i}`, encrypts, finish && i === last ? 'incomplete' : 'completed'),
    ),
  ]
}

function itemOf(said: Said, key: string, encrypts: boolean, status: string): FakeJson {
  if ('text' in said) {
    const content = [{ type: 'output_text', text: said.text, annotations: said.annotations ?? [], logprobs: [] }]
    return { id: `msg_up_${key}`, type: 'message', status, role: 'assistant', phase: 'final_answer', content }
  }
  if ('call' in said) {
    const { id, name, input } = said.call
    return { id: `fc_up_${key}`, type: 'function_call', status, call_id: id, name, arguments: JSON.stringify(input) }
  }
  const thought = 'thinking' in said
  const summary = thought ? [{ type: 'summary_text', text: said.thinking }] : []
  const content = thought ? (said.signature ?? `enc_${key}`) : said.redacted
  return { id: `rs_up_${key}`, type: 'reasoning', summary, ...(encrypts && { encrypted_content: content }) }
}
