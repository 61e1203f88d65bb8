import type { GuardOptions } from '@tollgate/http'

export interface RenderWorkerSettings {
  /** The browser's program. */
  executable: string
  /** Pages shown at once. */
  slots: number
  /** The browser's own sandbox; off where a container without namespaces is the sandbox. */
  isSandboxed: boolean
  /** Exceptions from the guard that the operator made for every fetch (WM-86). */
  guard?: Pick<GuardOptions, 'allowedHosts' | 'denied' | 'nat64Prefixes'>
  limits?: Partial<RenderLimits>
}

export interface RenderLimits {
  /** Bytes that a page may take from the network, with all it asks for. */
  pageBytes: number
  /** Requests and tunnels of one page. */
  requests: number
  /** After this long without a request a page is taken to be complete, and after this long whatever it does. */
  quietMs: number
  settleMs: number
  /** Memory of all the browser's processes together; past it the browser is replaced. */
  memoryBytes: number
  /** Pages after which a browser is replaced, once nobody uses it. */
  pagesPerBrowser: number
}

export const defaultRenderLimits: RenderLimits = {
  pageBytes: 20 * 1024 * 1024,
  requests: 300,
  quietMs: 500,
  settleMs: 5_000,
  memoryBytes: 1536 * 1024 * 1024,
  pagesPerBrowser: 200,
}
