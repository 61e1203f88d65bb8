import type { Wire } from './lanes.ts'

/** A model's answer as its provider streams it: what begins it, a piece of text, and what ends it. */
export interface Script {
  begin: string[]
  piece: string
  end: string
  /** The same, not streamed. */
  whole: string
}

/** What a piece says. */
export const TEXT = 'token text '
const TOKENS = { in: 12, out: 100 }
const CREATED = 1_792_000_000

/** The wire that a path belongs to. */
export function wireOf(path: string): Wire {
  if (path.endsWith('/chat/completions')) return 'openai-chat'
  if (path.endsWith('/responses')) return 'openai-responses'
  if (path.endsWith('/messages')) return 'anthropic'
  return 'gemini'
}

const data = (value: object): string => `data: ${JSON.stringify(value)}\n\n`
const event = (type: string, members: object): string => `event: ${type}\n${data({ type, ...members })}`

function chat(): Script {
  const usage = { prompt_tokens: TOKENS.in, completion_tokens: TOKENS.out, total_tokens: TOKENS.in + TOKENS.out }
  const own = { service_tier: 'default', system_fingerprint: 'fp_29330a9688' }
  const head = { id: 'chatcmpl-bench', object: 'chat.completion.chunk', created: CREATED, model: 'bench', ...own }
  const chunk = (delta: object, finish_reason: string | null = null) =>
    data({
      ...head,
      choices: [{ index: 0, delta, logprobs: null, finish_reason }],
      usage: null,
      obfuscation: 'lRK2aBv',
    })
  const message = { role: 'assistant', content: 'word '.repeat(TOKENS.out), refusal: null }
  return {
    begin: [chunk({ role: 'assistant', content: '', refusal: null })],
    piece: chunk({ content: TEXT }),
    end: `${chunk({}, 'stop')}${data({ ...head, choices: [], usage })}data: [DONE]\n\n`,
    whole: JSON.stringify({
      ...head,
      object: 'chat.completion',
      choices: [{ index: 0, message, logprobs: null, finish_reason: 'stop' }],
      usage,
    }),
  }
}

function messages(): Script {
  const usage = {
    input_tokens: TOKENS.in,
    cache_creation_input_tokens: 0,
    cache_read_input_tokens: 0,
    output_tokens: 1,
  }
  const message = { id: 'msg_bench', type: 'message', role: 'assistant', model: 'bench', content: [] as object[] }
  const open = { ...message, stop_reason: null, stop_sequence: null, usage }
  return {
    begin: [
      event('message_start', { message: open }),
      event('content_block_start', { index: 0, content_block: { type: 'text', text: '' } }),
      event('ping', {}),
    ],
    piece: event('content_block_delta', { index: 0, delta: { type: 'text_delta', text: TEXT } }),
    end:
      event('content_block_stop', { index: 0 }) +
      event('message_delta', {
        delta: { stop_reason: 'end_turn', stop_sequence: null },
        usage: { output_tokens: TOKENS.out },
      }) +
      event('message_stop', {}),
    whole: JSON.stringify({
      ...open,
      content: [{ type: 'text', text: 'word '.repeat(TOKENS.out) }],
      stop_reason: 'end_turn',
      usage: { ...usage, output_tokens: TOKENS.out },
    }),
  }
}

function responses(): Script {
  const usage = {
    input_tokens: TOKENS.in,
    input_tokens_details: { cached_tokens: 0 },
    output_tokens: TOKENS.out,
    output_tokens_details: { reasoning_tokens: 0 },
    total_tokens: TOKENS.in + TOKENS.out,
  }
  const response = (status: string, output: object[], counted: object | null) => ({
    id: 'resp_bench',
    object: 'response',
    created_at: CREATED,
    status,
    model: 'bench',
    output,
    parallel_tool_calls: true,
    tool_choice: 'auto',
    tools: [],
    store: false,
    usage: counted,
  })
  const text = 'word '.repeat(TOKENS.out)
  const part = (said: string) => ({ type: 'output_text', annotations: [], logprobs: [], text: said })
  const item = (status: string, content: object[]) => ({
    id: 'msg_bench',
    type: 'message',
    status,
    content,
    role: 'assistant',
  })
  const at = { item_id: 'msg_bench', output_index: 0, content_index: 0 }
  const ended = response('completed', [item('completed', [part(text)])], usage)
  return {
    begin: [
      event('response.created', { sequence_number: 0, response: response('in_progress', [], null) }),
      event('response.in_progress', { sequence_number: 1, response: response('in_progress', [], null) }),
      event('response.output_item.added', { sequence_number: 2, output_index: 0, item: item('in_progress', []) }),
      event('response.content_part.added', { sequence_number: 3, ...at, part: part('') }),
    ],
    piece: event('response.output_text.delta', {
      sequence_number: 4,
      ...at,
      delta: TEXT,
      logprobs: [],
      obfuscation: 'lRK2aBv',
    }),
    end:
      event('response.output_text.done', { sequence_number: 5, ...at, text, logprobs: [] }) +
      event('response.content_part.done', { sequence_number: 6, ...at, part: part(text) }) +
      event('response.output_item.done', {
        sequence_number: 7,
        output_index: 0,
        item: item('completed', [part(text)]),
      }) +
      event('response.completed', { sequence_number: 8, response: ended }),
    whole: JSON.stringify(ended),
  }
}

function gemini(): Script {
  const counts = {
    promptTokenCount: TOKENS.in,
    candidatesTokenCount: TOKENS.out,
    totalTokenCount: TOKENS.in + TOKENS.out,
  }
  const usageMetadata = { ...counts, promptTokensDetails: [{ modality: 'TEXT', tokenCount: TOKENS.in }] }
  const generated = (text: string, more: object = {}) => ({
    candidates: [{ content: { parts: [{ text }], role: 'model' }, ...more, index: 0 }],
    usageMetadata,
    modelVersion: 'bench',
    responseId: 'tTCwacuEBMvnitYP06qsgQY',
  })
  // this vendor ends its lines with both characters
  const piece = (value: object) => data(value).replaceAll('\n', '\r\n')
  return {
    begin: [],
    piece: piece(generated(TEXT)),
    end: piece(generated('', { finishReason: 'STOP' })),
    whole: JSON.stringify(generated('word '.repeat(TOKENS.out), { finishReason: 'STOP' })),
  }
}

/** As the vendors send them, members that nobody needs included. */
export const scripts: Record<Wire, Script> = {
  'openai-chat': chat(),
  'openai-responses': responses(),
  anthropic: messages(),
  gemini: gemini(),
}
