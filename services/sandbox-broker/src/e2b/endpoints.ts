import type { Handle } from './leases.ts'

/** Read at each call, so that a runtime change holds for the next one. */
export interface E2bSettings {
  domain: string
  template: string
  /** Whether code may reach the internet; what a model wrote has no business there unless the operator says so. */
  internet: boolean
  /** In place of what follows from `domain`: for a deployment of one's own, and for tests. */
  apiUrl?: string
  sandboxUrl?: string
}

/** The vendor's cloud, and its template with an interpreter in it. */
export const e2bDefaults: E2bSettings = { domain: 'e2b.app', template: 'code-interpreter-v1', internet: false }

/** Where a sandbox listens: its agent (files, commands), and the server of the interpreter. */
export const AGENT_PORT = 49983
export const INTERPRETER_PORT = 49999

export const apiUrl = ({ apiUrl, domain }: E2bSettings): string =>
  (apiUrl ?? `https://api.${domain}`).replace(/\/+$/, '')

export const sandboxUrl = (settings: E2bSettings, id: string, port: number, domain = settings.domain): string =>
  (settings.sandboxUrl ?? `https://${port}-${id}.${domain}`).replace(/\/+$/, '')

/** The code runs with the sandbox's own token; contexts are asked for without it, as the vendor's client does. */
export function interpreterHeaders(handle: Handle, what: 'execute' | 'contexts'): Record<string, string> {
  const { id, accessToken, trafficToken } = handle
  return {
    'e2b-sandbox-id': id,
    'e2b-sandbox-port': String(INTERPRETER_PORT),
    ...(trafficToken ? { 'e2b-traffic-access-token': trafficToken } : {}),
    ...(accessToken && what === 'execute' ? { 'x-access-token': accessToken } : {}),
  }
}
