import type { Log } from '@tollgate/telemetry'
import { z } from 'zod'
import { isObject } from '../conversation/json.ts'
import type { Json, JsonObject } from '../conversation/turn.ts'
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
/** Of one server: tools that are kept, and the characters of all their schemas and of each. */
const MOST_TOOLS = 500
const MOST_CHARACTERS = 1024 * 1024
const MOST_SCHEMA_CHARACTERS = 64 * 1024
/** The least that a model API takes. */
const MOST_NAME = 64
const MOST_DESCRIPTION = 1_024
/** The longest that a server may have. */
const MOST_OWN_NAME = 256
/** Tools that are left out and named in the log; of more only the number is told. */
const MOST_TOLD = 20

const page = z.looseObject({ tools: z.array(z.unknown()), nextCursor: z.string().max(8_192).nullish() })
interface Entry {
  name: string
  title: string | undefined
  description: string | undefined
  inputSchema: JsonObject
}

/** By hand: a listing may hold a hundred thousand things that are no tools, and to tell what is wrong with each takes seconds. */
function entryOf(listed: unknown): Entry | undefined {
  if (!isObject(listed as Json)) return undefined
  const { name, title, description, inputSchema } = listed as JsonObject
  if (typeof name !== 'string' || name === '' || name.length > MOST_OWN_NAME) return undefined
  if (inputSchema === undefined || !isObject(inputSchema)) return undefined
  return { name, title: textOrNone(title), description: textOrNone(description), inputSchema }
}

const textOrNone = (value: Json | undefined): string | undefined => (typeof value === 'string' ? value : undefined)

/** A server as far as its listing is concerned. */
interface Listed {
  name: string
  /** Undefined: all (M-03). */
  allowedTools: readonly string[] | undefined
}

/**
 * The tools of a server that a request may use. A tool that no model could be offered is left out, said so in the log, and
 * takes no other with it (BR-151).
 */
export async function listTools(session: Session, server: Listed, limits: Limits, log: Log): Promise<ListedTool[]> {
  const tools = new Map<string, ListedTool>()
  const seen = new Set<string>()
  let characters = 0
  let leftOut = 0
  let cursor: string | undefined

  function take(listed: unknown): void {
    const { name, tool, why } = readTool(listed, server.allowedTools)
    const taken = tool !== undefined && tools.has(tool.offered)
    if (why !== undefined || taken) {
      leftOut += 1
      if (leftOut > MOST_TOLD) return
      const told = { server: server.name, tool: name.slice(0, MOST_NAME), why: why ?? 'another one has its name' }
      log.warn(told, 'a tool of an MCP server is not offered')
    } else if (tool) {
      characters += JSON.stringify(tool.parameters).length
      tools.set(tool.offered, tool)
    }
  }

  do {
    const read = await session.request('tools/list', cursor === undefined ? {} : { cursor }, page, limits)
    read.tools.forEach(take)
    cursor = read.nextCursor || undefined
    // in a circle, without an end, or more than any request could use
    const circles = cursor !== undefined && (seen.has(cursor) || seen.size === MOST_PAGES - 1)
    if (circles || tools.size > MOST_TOOLS || characters > MOST_CHARACTERS) throw new ServerFailure('listing_endless')
    if (cursor !== undefined) seen.add(cursor)
  } while (cursor !== undefined)
  if (leftOut > MOST_TOLD)
    log.warn({ server: server.name, leftOut }, 'more tools of an MCP server are not offered than are named')
  return [...tools.values()]
}

interface ReadTool {
  name: string
  /** Absent when no model could be offered it, and when the request does not want it. */
  tool?: ListedTool
  why?: string
}

function readTool(listed: unknown, allowed: Listed['allowedTools']): ReadTool {
  const entry = entryOf(listed)
  if (entry === undefined) return { name: nameIn(listed), why: 'it has no name or no schema of an object' }
  const { name } = entry
  if (allowed?.includes(name) === false) return { name }
  const parameters = offeredSchema(entry.inputSchema)
  if (parameters === undefined) return { name, why: 'its schema is nested too deeply' }
  if (JSON.stringify(parameters).length > MOST_SCHEMA_CHARACTERS) return { name, why: 'its schema is too large' }
  return { name, tool: { name, offered: offeredName(name), description: describe(entry), parameters } }
}

/** Names of MCP may have dots and strokes, and be longer; those of functions may not. */
const offeredName = (name: string): string => name.replace(/[^a-zA-Z0-9_-]/g, '_').slice(0, MOST_NAME)

function describe({ name, title, description }: Entry): string {
  const text = (description?.trim() || title?.trim() || name).toWellFormed()
  return text.length <= MOST_DESCRIPTION ? text : `${text.slice(0, MOST_DESCRIPTION - 1).toWellFormed()}…`
}

function nameIn(listed: unknown): string {
  const name = isObject(listed as Json) ? (listed as JsonObject).name : undefined
  return typeof name === 'string' ? name : ''
}
