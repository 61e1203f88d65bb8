import { anthropicFilesDoor } from './model-anthropic-files.ts'
import { anthropicMistake } from './model-anthropic-rules.ts'
import type { FakeFiles } from './model-files.ts'
import { type FakeJson, type ModelScript, piecesOf, type Said, type ScriptedAnswer } from './model-script.ts'
import { eventStream, type FakeModel, json, type Refusal, startFakeModel } from './model-server.ts'

export interface FakeAnthropicOptions {
  /** A request without this key is a 401; any key will do when absent. */
  apiKey?: string
  /** A compatible server: thinking needs no signature, and tokens are not counted. */
  compatible?: boolean
}

/** What counting takes no part of, and what only counting may leave out. */
const NOT_COUNTED = ['max_tokens', 'stream', 'temperature', 'top_k', 'top_p', 'metadata', 'stop_sequences']

/** The one that gateways and servers of the field speak, and the one of the vendor's newest client. */
const VERSIONS = new Set(['2023-06-01', '2026-10-21'])
const USAGE = { input_tokens: 11, output_tokens: 7 }

/** Anthropic's Messages API with a scripted model behind it, and its Files API. Its base is `<url>`. */
export const fakeAnthropic = async (
  script: ModelScript,
  options: FakeAnthropicOptions = {},
): Promise<FakeModel & { files: FakeFiles }> => {
  const signatures = new Set<string>()
  const door = anthropicFilesDoor(options.apiKey)
  const { files } = door
  const model = await startFakeModel(
    {
      ...(!options.compatible && { files: door }),
      path: '/v1/messages',
      refuse(body, headers) {
        // documented is x-api-key; the vendor's own client sends a bearer token
        const key = headers['x-api-key'] ?? headers.authorization?.replace(/^Bearer /, '')
        if (options.apiKey !== undefined && key !== options.apiKey)
          return refusal(401, 'authentication_error', 'invalid x-api-key')
        if (!VERSIONS.has(String(headers['anthropic-version'])))
          return refusal(400, 'invalid_request_error', 'anthropic-version: header is required')
        const hasFile = (id: unknown) => files.find(String(id)) !== undefined
        const mistake = anthropicMistake(body, { signatures, unsigned: options.compatible ?? false, hasFile })
        return mistake === undefined ? undefined : refusal(400, 'invalid_request_error', mistake)
      },
      ...(!options.compatible && {
        counts: {
          path: '/v1/messages/count_tokens',
          judged: (body) =>
            NOT_COUNTED.some((name) => name in body)
              ? { ...body, max_tokens: 'is not counted' }
              : { ...body, max_tokens: 64_000 },
          count: (body) => ({ input_tokens: JSON.stringify([body.system, body.messages, body.tools]).length }),
        },
      }),
      render(answer, body, round) {
        for (const said of answer.says) if ('thinking' in said && said.signature) signatures.add(said.signature)
        return body.stream === true
          ? eventStream(anthropicStream(answer, body, round))
          : json(200, messageOf(answer, body, round))
      },
    },
    script,
  )
  return Object.assign(model, { files })
}

function refusal(status: number, type: string, message: string): Refusal {
  return { status, message, body: { type: 'error', error: { type, message }, request_id: 'req_fake' } }
}

/** The answer as the events of a stream. */
export function anthropicStream(answer: ScriptedAnswer, body: FakeJson, round = 0): string {
  const { usage, ...head } = messageOf(answer, body, round)
  const { output_tokens, ...input } = (usage ?? USAGE) as FakeJson
  const events: FakeJson[] = [
    {
      type: 'message_start',
      message: { ...head, content: [], stop_reason: null, usage: usage && { ...input, output_tokens: 1 } },
    },
    ...nativeIn(answer).flatMap((content_block, index) => [
      { type: 'content_block_start', index, content_block },
      { type: 'content_block_stop', index },
    ]),
    ...answer.says.flatMap((said, at) => {
      const index = nativeIn(answer).length + at
      return [
        { type: 'content_block_start', index, content_block: startOf(said) },
        ...(index === 0 ? [{ type: 'ping' }] : []),
        ...deltasOf(said, answer.piece ?? 5).map((delta) => ({ type: 'content_block_delta', index, delta })),
        { type: 'content_block_stop', index },
      ]
    }),
    {
      type: 'message_delta',
      delta: { stop_reason: head.stop_reason, stop_sequence: null },
      ...(usage ? { usage: { output_tokens } } : {}),
    },
    { type: 'message_stop' },
  ]
  return events.map((event) => `event: ${String(event.type)}\ndata: ${JSON.stringify(event)}\n\n`).join('')
}

const nativeIn = ({ native = [] }: ScriptedAnswer): FakeJson[] => native.map(({ item }) => item)

function startOf(said: Said): FakeJson {
  if ('text' in said) return { type: 'text', text: '' }
  if ('thinking' in said) return { type: 'thinking', thinking: '', signature: '' }
  return 'call' in said ? { ...blockOf(said), input: {} } : blockOf(said)
}

function deltasOf(said: Said, piece: number): FakeJson[] {
  if ('text' in said) return piecesOf(said.text, piece).map((text) => ({ type: 'text_delta', text }))
  if ('redacted' in said) return []
  if ('thinking' in said) {
    const deltas: FakeJson[] = piecesOf(said.thinking, piece).map((thinking) => ({ type: 'thinking_delta', thinking }))
    return said.signature === undefined ? deltas : [...deltas, { type: 'signature_delta', signature: said.signature }]
  }
  if (Object.keys(said.call.input).length === 0) return []
  return piecesOf(JSON.stringify(said.call.input), piece).map((partial_json) => ({
    type: 'input_json_delta',
    partial_json,
  }))
}

function blockOf(said: Said): FakeJson {
  if ('text' in said) return { type: 'text', text: said.text }
  if ('thinking' in said) return { type: 'thinking', thinking: said.thinking, signature: said.signature ?? '' }
  if ('redacted' in said) return { type: 'redacted_thinking', data: said.redacted }
  return { type: 'tool_use', ...said.call }
}

function messageOf(answer: ScriptedAnswer, { model }: FakeJson, round: number): FakeJson {
  const { says, finish, usage } = answer
  return {
    id: `msg_up_${round + 1}`,
    type: 'message',
    role: 'assistant',
    model,
    content: [...nativeIn(answer), ...says.map(blockOf)],
    stop_reason: finish ?? (says.some((said) => 'call' in said) ? 'tool_use' : 'end_turn'),
    stop_sequence: null,
    ...(usage !== null && { usage: usage ?? USAGE }),
  }
}
