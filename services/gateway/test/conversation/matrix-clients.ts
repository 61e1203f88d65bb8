import Anthropic from '@anthropic-ai/sdk'
import type { TokenCounts } from '@tollgate/contracts'
import OpenAI from 'openai'
import { promises } from './matrix-promises.ts'

type Body = Record<string, unknown>

/** What an answer said, whichever client read it; the finish in the words of Chat. */
export interface Heard {
  text: string
  thinking: string
  calls: { id: string; name: string; input: unknown }[]
  finish: string
  tokens: Partial<TokenCounts>
  /** What the client sends back of it. */
  echo: Body[]
  /** The answer as the client has put it together. */
  raw: object
}

export interface Asked {
  url: string
  key: string
  model: string
  streamed: boolean
  /** The turns of the conversation in the dialect's own form, the first user's included. */
  history: Body[]
  tools?: Body[] | undefined
  extra?: Body | undefined
  headers?: Record<string, string> | undefined
  signal?: AbortSignal | undefined
  /** The gateway has said how the request went. */
  begun?: (() => void) | undefined
}

/** The vendor's own client of one dialect, with what a test says in that dialect's words. */
export interface MatrixClient {
  tools: { search: Body; fetch: Body; weather: Body }
  user(text: string): Body
  result(call: string, text: string): Body
  ask(asked: Asked): Promise<Heard>
}

const schema = { type: 'object', properties: { city: { type: 'string' } } }
const gatewayTools = { search: { type: 'otari_web_search' }, fetch: { type: 'otari_web_fetch' } }

/** A `fetch` that keeps the text of the answer, and what the stream must have been when it has ended. */
function listening(begun?: () => void) {
  let text: Promise<string> | undefined
  return {
    async fetch(url: string | URL | Request, init?: RequestInit): Promise<Response> {
      const response = await fetch(url, init)
      begun?.()
      text = response.clone().text()
      // one that breaks off is the answer's own failure
      text.catch(() => {})
      return response
    },
    text: () => text ?? Promise.resolve(''),
  }
}

const openAi = ({ url, key }: Asked, heard: ReturnType<typeof listening>) =>
  new OpenAI({ baseURL: `${url}/api/v1`, apiKey: key, maxRetries: 0, fetch: heard.fetch as typeof fetch })

/** OpenAI counts both inside of what went in; its clients know no more than the first. */
function cached(details: object | undefined): { cacheRead: number; cacheWrite: number } {
  const { cached_tokens: cacheRead = 0, cache_write_tokens: cacheWrite = 0 } = (details ?? {}) as Record<string, number>
  return { cacheRead, cacheWrite }
}

/** Arguments that were cut off are shown to no test. */
function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return {}
  }
}

const chat: MatrixClient = {
  tools: { ...gatewayTools, weather: { type: 'function', function: { name: 'get_weather', parameters: schema } } },
  user: (content) => ({ role: 'user', content }),
  result: (tool_call_id, content) => ({ role: 'tool', tool_call_id, content }),
  async ask(asked) {
    const { model, streamed, history, tools, extra, headers, signal, begun } = asked
    const heard = listening(begun)
    const { completions } = openAi(asked, heard).chat
    const body = { model, messages: history, ...(tools && { tools }), ...extra } as Body
    let completion: OpenAI.ChatCompletion
    let thinking = ''
    if (streamed) {
      const stream = completions.stream({ ...body, stream_options: { include_usage: true } } as never, {
        signal,
        headers,
      })
      // of what other vendors add the client puts nothing together
      stream.on('chunk', ({ choices: [choice] }) => {
        thinking += (choice?.delta as { reasoning_content?: string } | undefined)?.reasoning_content ?? ''
      })
      completion = await stream.finalChatCompletion()
      promises.chat(await heard.text())
    } else completion = (await completions.create(body as never, { signal, headers })) as OpenAI.ChatCompletion
    const [{ message, finish_reason: finish }] = completion.choices as [OpenAI.ChatCompletion.Choice]
    thinking ||= (message as { reasoning_content?: string }).reasoning_content ?? ''
    const calls = (message.tool_calls ?? []).flatMap((call) => (call.type === 'function' ? [call] : []))
    const { usage } = completion
    const { cacheRead, cacheWrite } = cached(usage?.prompt_tokens_details)
    return {
      text: message.content ?? '',
      thinking,
      calls: calls.map(({ id, function: { name, arguments: args } }) => ({ id, name, input: parsed(args) })),
      finish,
      tokens: {
        input: (usage?.prompt_tokens ?? 0) - cacheRead - cacheWrite,
        output: usage?.completion_tokens ?? 0,
        cacheRead,
        cacheWrite,
        reasoning: usage?.completion_tokens_details?.reasoning_tokens ?? 0,
      },
      raw: message,
      echo: [
        {
          role: 'assistant',
          content: message.content,
          ...(thinking && { reasoning_content: thinking }),
          // without what the client's own helper adds
          ...(calls.length > 0 && {
            tool_calls: calls.map(({ id, type, function: { name, arguments: args } }) => ({
              id,
              type,
              function: { name, arguments: args },
            })),
          }),
        },
      ],
    }
  },
}

const FINISH: Record<string, string> = { end_turn: 'stop', tool_use: 'tool_calls', max_tokens: 'length' }

const messages: MatrixClient = {
  tools: { ...gatewayTools, weather: { name: 'get_weather', input_schema: schema } },
  user: (content) => ({ role: 'user', content }),
  result: (tool_use_id, content) => ({ role: 'user', content: [{ type: 'tool_result', tool_use_id, content }] }),
  async ask({ url, key, model, streamed, history, tools, extra, headers, signal, begun }) {
    const heard = listening(begun)
    const client = new Anthropic({
      apiKey: key,
      baseURL: `${url}/api`,
      maxRetries: 0,
      fetch: heard.fetch as typeof fetch,
    })
    const asked = { model, max_tokens: 2_000, messages: history, ...(tools && { tools }), ...extra }
    const body = asked as unknown as Anthropic.MessageCreateParamsNonStreaming
    let message: Anthropic.Message
    if (streamed) {
      message = await client.messages.stream(body, { signal, headers }).finalMessage()
      promises.messages(await heard.text())
    } else message = await client.messages.create(body, { signal, headers })
    const said = (type: string, member: string) =>
      message.content.flatMap((block) => (block.type === type ? [(block as unknown as Body)[member]] : [])).join('')
    const { usage } = message
    return {
      text: said('text', 'text'),
      thinking: said('thinking', 'thinking'),
      calls: message.content.flatMap((block) =>
        block.type === 'tool_use' ? [{ id: block.id, name: block.name, input: block.input }] : [],
      ),
      finish: FINISH[String(message.stop_reason)] ?? String(message.stop_reason),
      tokens: {
        input: usage.input_tokens,
        output: usage.output_tokens,
        cacheRead: usage.cache_read_input_tokens ?? 0,
        cacheWrite: usage.cache_creation_input_tokens ?? 0,
      },
      echo: [{ role: 'assistant', content: message.content }],
      raw: message,
    }
  },
}

const responses: MatrixClient = {
  tools: { ...gatewayTools, weather: { type: 'function', name: 'get_weather', parameters: schema, strict: false } },
  user: (content) => ({ role: 'user', content }),
  result: (call_id, output) => ({ type: 'function_call_output', call_id, output }),
  async ask(asked) {
    const { model, streamed, history, tools, extra, headers, signal, begun } = asked
    const heard = listening(begun)
    const client = openAi(asked, heard).responses
    const body = { model, input: history, store: false, ...(tools && { tools }), ...extra } as never
    let answer: OpenAI.Responses.Response
    if (streamed) {
      answer = await client.stream(body, { signal, headers }).finalResponse()
      promises.responses(await heard.text())
    } else answer = (await client.create(body, { signal, headers })) as OpenAI.Responses.Response
    const calls = answer.output.flatMap((item) => (item.type === 'function_call' ? [item] : []))
    const finish = answer.status === 'incomplete' ? 'length' : calls.length > 0 ? 'tool_calls' : 'stop'
    const { usage } = answer
    const { cacheRead, cacheWrite } = cached(usage?.input_tokens_details)
    return {
      text: answer.output_text,
      thinking: answer.output
        .flatMap((item) => (item.type === 'reasoning' ? item.summary.map(({ text }) => text) : []))
        .join(''),
      calls: calls.map(({ call_id: id, name, arguments: args }) => ({ id, name, input: parsed(args) })),
      finish,
      tokens: {
        input: (usage?.input_tokens ?? 0) - cacheRead - cacheWrite,
        output: usage?.output_tokens ?? 0,
        cacheRead,
        cacheWrite,
        reasoning: usage?.output_tokens_details?.reasoning_tokens ?? 0,
      },
      // what the client's own helper adds is nothing that an API takes back
      raw: answer,
      echo: (answer.output as unknown as Body[]).map(({ parsed_arguments: _, ...item }) => item),
    }
  },
}

export const clients = { chat, messages, responses }
export type DialectName = keyof typeof clients
export const dialects = Object.keys(clients) as DialectName[]
