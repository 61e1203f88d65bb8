import type { ToolActivity } from '../../conversation/events.ts'
import type { JsonObject, Turn } from '../../conversation/turn.ts'
import { mint } from './ids.ts'

/** What the client asked to be shown of tools that run here, and what that takes. */
export interface GatewayItems {
  /** `web_search_call.action.sources` was asked for. */
  sources: boolean
  /** The client declared `code_interpreter`. */
  code: boolean
  /** Where this gateway's files are for the client. */
  fileUrl(id: string): string
  /** The sandbox that outlives the request. */
  hold(container: string): void
  /** That one's id, else one that cannot be resumed (C-31). */
  container(): string
}

export function gatewayItems(turn: Turn, include: ReadonlySet<string>, baseUrl: string): GatewayItems {
  let container: string | undefined
  return {
    sources: include.has('web_search_call.action.sources'),
    code: turn.tools.some((entry) => entry.kind === 'typed' && entry.type === 'code_interpreter'),
    fileUrl: (id) => `${baseUrl.replace(/\/$/, '')}/api/v1/files/${encodeURIComponent(id)}/content`,
    hold(id) {
      container = id
    },
    container: () => (container ??= mint('container')),
  }
}

/** An item but for its id, and which kind of id it gets. */
export interface NamelessItem {
  kind: 'webSearch' | 'codeInterpreter'
  members: JsonObject
}

/** A finished call of a tool that ran here, as an item; undefined for one that clients are not shown. */
export function gatewayItem({ outcome }: ToolActivity, shows: GatewayItems): NamelessItem | undefined {
  const shown = outcome?.shown
  switch (shown?.kind) {
    case 'web_search': {
      const { query, sources, failure } = shown
      // refused by a cap: no search was made
      if (failure?.tag === 'call_limit') return undefined
      const found = sources.map(({ url }) => ({ type: 'url', url }))
      const action = { type: 'search', query, ...(shows.sources && { sources: found }) }
      const status = failure ? 'failed' : 'completed'
      return { kind: 'webSearch', members: { type: 'web_search_call', status, action } }
    }
    case 'code_execution': {
      if (!shows.code) return undefined
      const { code, stdout, stderr, files = [] } = shown
      const logs = stdout + stderr
      const outputs: JsonObject[] = logs === '' ? [] : [{ type: 'logs', logs }]
      for (const { id, mediaType } of files) {
        if (id !== undefined && mediaType?.startsWith('image/')) outputs.push({ type: 'image', url: shows.fileUrl(id) })
      }
      const members = {
        type: 'code_interpreter_call',
        status: outcome?.isError ? 'failed' : 'completed',
        container_id: shows.container(),
        code,
        outputs: outputs.length > 0 ? outputs : null,
      }
      return { kind: 'codeInterpreter', members }
    }
    case 'provider_tool': {
      const { search, query, failure } = shown
      if (!search) return undefined
      const action = { type: 'search', ...(query !== undefined && { query }) }
      const status = failure ? 'failed' : 'completed'
      return { kind: 'webSearch', members: { type: 'web_search_call', status, action } }
    }
    case 'web_fetch':
    case 'mcp':
    case 'tool_search':
    case undefined:
      return undefined
    default:
      return shown satisfies never
  }
}
