import OpenAI from 'openai'
import type { Deployment } from './deployment.ts'

export interface UsageLine {
  meter: string
  label: string
  units: number
  unit_rate: number | null
  cost: number | null
}

export interface UsageRow {
  id: string
  key_id: string
  model: string
  provider: string
  endpoint: string
  prompt_tokens: number
  completion_tokens: number
  total_tokens: number
  billing_meters: { tools?: Record<string, { billed: number; errors: number }> }
  pricing_breakdown: UsageLine[]
  cost: number | null
  status: string
  error: string | null
  settled_by: 'gateway' | 'sweep'
}

export interface Answered {
  status: number
  headers: Headers
  text: string
  // biome-ignore lint/suspicious/noExplicitAny: a client of any language reads JSON without knowing its shape
  json: any
}

/** Longest that a test waits for one answer. */
const ANSWER_MS = 60_000

/** One HTTP request as a client without any library sends it. */
export async function ask(
  { url }: Pick<Deployment, 'url'>,
  method: string,
  path: string,
  { key, body, text, headers = {} }: { key?: string; body?: unknown; text?: string; headers?: Record<string, string> },
): Promise<Answered> {
  const sent = text ?? (body === undefined ? undefined : JSON.stringify(body))
  const response = await fetch(url + path, {
    method,
    headers: {
      ...(sent === undefined ? {} : { 'content-type': 'application/json' }),
      ...(key === undefined ? {} : { authorization: `Bearer ${key}` }),
      ...headers,
    },
    ...(sent === undefined ? {} : { body: sent }),
    signal: AbortSignal.timeout(ANSWER_MS),
  })
  const answered = await response.text()
  return { status: response.status, headers: response.headers, text: answered, json: parsed(answered) }
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined // an event stream, say
  }
}

async function askWell(...request: Parameters<typeof ask>): Promise<Answered> {
  const answer = await ask(...request)
  if (answer.status >= 300) throw new Error(`${request[1]} ${request[2]} answered ${answer.status}: ${answer.text}`)
  return answer
}

/** A key of the default user, made by the operator. */
export async function makeKey(deployment: Deployment, wanted: object = {}): Promise<string> {
  const made = await askWell(deployment, 'POST', '/api/v1/keys', { key: deployment.masterKey, body: wanted })
  return made.json.key
}

/** Dollars per million tokens, or per million calls. */
export const setPrice = (deployment: Deployment, modelKey: string, input: number, output = 0): Promise<Answered> =>
  askWell(deployment, 'POST', '/api/v1/pricing', {
    key: deployment.masterKey,
    body: { model_key: modelKey, input_price_per_million: input, output_price_per_million: output },
  })

/** The rows of one request, as the operator sees them. */
export async function usageOf(deployment: Deployment, request: string): Promise<{ rows: UsageRow[]; text: string }> {
  const { json, text } = await askWell(deployment, 'GET', `/api/v1/usage?request_id=${request}`, {
    key: deployment.masterKey,
  })
  return { rows: json.data, text }
}

/** The official client, as anyone would set it up, but for its repeats: each test counts what it sends. */
export const openaiClient = ({ url }: Pick<Deployment, 'url'>, apiKey: string): OpenAI =>
  new OpenAI({ baseURL: `${url}/v1`, apiKey, maxRetries: 0, timeout: ANSWER_MS })
