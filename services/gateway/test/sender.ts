export interface Sent {
  /** Whom to speak as; nobody when absent. */
  key?: string
  /** JSON; a text goes out as it is. */
  body?: unknown
  headers?: Record<string, string>
}

export interface Answer<B> {
  status: number
  headers: Headers
  text: string
  body: B
}

export type Send = <B = unknown>(method: string, path: string, given?: Sent) => Promise<Answer<B>>

/** Sends requests to one server and reads their answers whole. */
export const sender =
  (url: string): Send =>
  async <B>(method: string, path: string, { key, body, headers }: Sent = {}) => {
    const response = await fetch(`${url}${path}`, {
      method,
      redirect: 'manual',
      headers: {
        ...(key === undefined ? {} : { authorization: `Bearer ${key}` }),
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
        ...headers,
      },
      ...(body === undefined ? {} : { body: typeof body === 'string' ? body : JSON.stringify(body) }),
    })
    const text = await response.text()
    const isJson = response.headers.get('content-type')?.startsWith('application/json')
    return {
      status: response.status,
      headers: response.headers,
      text,
      body: (isJson ? JSON.parse(text) : undefined) as B,
    }
  }
