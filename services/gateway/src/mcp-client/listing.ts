import type { Log } from '@tollgate/telemetry'
import { z } from 'zod'
import type { JsonObject } from '../conversation/turn.ts'
import { ServerFailure } from './failure.ts'
import { offeredSchema } from './schemas.ts'
import type { Limits, Session } from './session.ts'

/** A tool of an MCP server, in a form that a model can be offered. */
export interface ListedTool {
  /** As the server knows it. */
  name: string
  /** As the model does: the same where model APIs take it. */
  offered: string
  description: string
  parameters: JsonObject
}

const MOST_PAGES = 20
const MOST_TOOLS = 1_000
const MOST_SCHEMA_CHARACTERS = 64 * 1024
/** The least that a model API takes. */
const MOST_NAME = 64
const MOST_DESCRIPTION = 1_024

const page = z.looseObject({ tools: z.array(z.unknown()), nextCursor: z.string().max(8_192).nullish() })
const entry = z.looseObject({
  name: z.string().min(1).max(256),
  title: z.string().optional().catch(undefined),
  description: z.string().optional().catch(undefined),
  inputSchema: z.record(z.string(), z.unknown()),
})

/**
 * The tools of a server that `allowed` names, all where it is undefined (M-03). A tool that no model could be offered is
 * left out, said so in the log, and takes no other with it (BR-151).
 */
export async function listTools(
  session: Session,
  { name: server, allowedTools: allowed }: { name: string; allowedTools: readonly string[] | undefined },
  limits: Limits,
  log: Log,
): Promise<ListedTool[]> {
  const entries = await allPages(session, limits)
  const tools = new Map<string, ListedTool>()
  const leave = (tool: string, why: string) =>
    log.warn({ server, tool: tool.slice(0, MOST_NAME), why }, 'a tool of an MCP server is not offered')

  for (const listed of entries) {
    const { data } = entry.safeParse(listed)
    if (data === undefined) leave(nameIn(listed), 'it has no name or no schema of an object')
    else if (allowed === undefined || allowed.includes(data.name)) {
      const parameters = offeredSchema(data.inputSchema as JsonObject)
      const offered = offeredName(data.name)
      if (parameters === undefined) leave(data.name, 'its schema is nested too deeply')
      else if (JSON.stringify(parameters).length > MOST_SCHEMA_CHARACTERS) leave(data.name, 'its schema is too large')
      else if (tools.has(offered)) leave(data.name, 'another tool of the server has its name')
      else tools.set(offered, { name: data.name, offered, description: describe(data), parameters })
    }
  }
  return [...tools.values()]
}

async function allPages(session: Session, limits: Limits): Promise<unknown[]> {
  const tools: unknown[] = []
  const seen = new Set<string>()
  let cursor: string | undefined
  for (let pages = 1; pages <= MOST_PAGES; pages += 1) {
    const read = await session.request('tools/list', cursor === undefined ? {} : { cursor }, page, limits)
    tools.push(...read.tools)
    cursor = read.nextCursor || undefined
    if (cursor === undefined && tools.length <= MOST_TOOLS) return tools
    if (cursor === undefined || seen.has(cursor) || tools.length > MOST_TOOLS) break
    seen.add(cursor)
  }
  // without an end, in a circle, or more than any request could use
  throw new ServerFailure('not_understood')
}

/** Names of MCP may have dots and strokes, and be longer; those of functions may not. */
const offeredName = (name: string): string => name.replace(/[^a-zA-Z0-9_-]/g, '_').slice(0, MOST_NAME)

function describe({ name, title, description }: z.output<typeof entry>): string {
  const text = (description?.trim() || title?.trim() || name).toWellFormed()
  return text.length <= MOST_DESCRIPTION ? text : `${text.slice(0, MOST_DESCRIPTION - 1).toWellFormed()}…`
}

function nameIn(listed: unknown): string {
  const { data } = z.looseObject({ name: z.string() }).safeParse(listed)
  return data?.name ?? ''
}
