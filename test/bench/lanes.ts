export type Client = 'chat' | 'messages' | 'responses'
export type Wire = 'openai-chat' | 'openai-responses' | 'anthropic' | 'gemini'

/** A way through the gateway: what the client speaks, and what its model's provider does. */
export interface Lane {
  client: Client
  wire: Wire
  /** The answer is stored, as this dialect has it where the client does not say otherwise: it cannot pass unread then. */
  stored?: true
}

export const sameDialect: Lane[] = [
  { client: 'chat', wire: 'openai-chat' },
  { client: 'messages', wire: 'anthropic' },
  { client: 'responses', wire: 'openai-responses' },
]

export const translated: Lane[] = [
  { client: 'chat', wire: 'anthropic' },
  { client: 'chat', wire: 'gemini' },
  { client: 'messages', wire: 'openai-chat' },
  { client: 'messages', wire: 'gemini' },
  { client: 'responses', wire: 'openai-chat' },
  { client: 'responses', wire: 'anthropic' },
  { client: 'responses', wire: 'openai-responses', stored: true },
]

export const nameOf = ({ client, wire, stored }: Lane): string => `${client} -> ${wire}${stored ? ', stored' : ''}`

/** One kind of request, with how its answer is told to be whole. */
export interface Ask {
  path: string
  body: string
  /** Stands in every frame that says a piece of the text, once, and in no other. */
  piece: string
  /** Stands in the last frames. */
  last: string
}

const instances: Record<Wire, string> = {
  'openai-chat': 'bench',
  'openai-responses': 'responses',
  anthropic: 'claude',
  gemini: 'gemini',
}

export const models: string[] = Object.values(instances).map((instance) => `${instance}:bench`)

/** What a client of the gateway sends. */
export function askGateway({ client, wire, stored }: Lane, text: string, stream = true): Ask {
  return spoken(client, `${instances[wire]}:bench`, text, stream, stored === true)
}

/** What the provider itself is sent, by whoever passes its bytes on. */
export function askProvider({ wire }: Lane, text: string, stream = true): Ask {
  switch (wire) {
    case 'openai-chat':
      return spoken('chat', 'bench', text, stream, false)
    case 'openai-responses':
      return spoken('responses', 'bench', text, stream, false)
    case 'anthropic':
      return spoken('messages', 'bench', text, stream, false)
    case 'gemini':
      return {
        path: '/v1beta/models/bench:streamGenerateContent?alt=sse',
        body: JSON.stringify({ contents: [{ role: 'user', parts: [{ text }] }] }),
        piece: '"token text ',
        last: '"finishReason"',
      }
    default:
      return wire satisfies never
  }
}

function spoken(client: Client, model: string, text: string, stream: boolean, stored: boolean): Ask {
  switch (client) {
    case 'chat':
      return {
        path: '/v1/chat/completions',
        body: JSON.stringify({ model, stream, messages: [{ role: 'user', content: text }] }),
        piece: '"content":"token text ',
        last: '[DONE]',
      }
    case 'messages':
      return {
        path: '/v1/messages',
        body: JSON.stringify({ model, stream, max_tokens: 4_096, messages: [{ role: 'user', content: text }] }),
        piece: '"text_delta"',
        last: '"message_stop"',
      }
    case 'responses':
      return {
        path: '/v1/responses',
        body: JSON.stringify({ model, stream, input: text, ...(!stored && { store: false }) }),
        piece: '"delta":"token text ',
        last: '"response.completed"',
      }
    default:
      return client satisfies never
  }
}
