import { type HeldContainer, otariLabel, otariPriceKeys, toolError } from '@tollgate/contracts'
import type { Log } from '@tollgate/telemetry'
import type { ToolActivity } from '../conversation/events.ts'
import type { Tell } from '../conversation/tell.ts'
import type { JsonObject } from '../conversation/turn.ts'
import type { CallContext, OpenTool, Tool, ToolResult, ToolUse } from '../tools/tool.ts'
import { CallLimitReached } from './limits.ts'
import { measured } from './measured.ts'
import type { Owned } from './plan.ts'
import type { Tally } from './tally.ts'
import type { ModelCall } from './transcript.ts'

/** Calls of one request, whatever they are: its settlement, which names each, must fit into a message. */
const MOST_CALLS = 250

/** The tools of one request, ready to be called; they keep what they count over its rounds and attempts. */
export interface Toolbox {
  /** Makes the tools of an attempt ready. What this costs before an answer begins is still refused as a status. */
  open(owned: Iterable<Owned>, at: CallContext): Promise<void>
  /** Runs one call and records it, before anyone learns its result. Tells what a client may be shown of it. */
  run(call: ModelCall, at: CallContext, tell: Tell<ToolActivity>): Promise<ToolResult>
  /** The sandbox that outlives the request, if there is one. */
  container(): HeldContainer | undefined
  /** Ends the use of that sandbox before the client is told of it, who may come back at once (C-18); gives its new end (C-11). */
  release(): Promise<HeldContainer | undefined>
  /** Gives back what was leased. Nobody waits for it: a session that is not closed ends by its own timer. */
  close(options: { discard: boolean }): void
}

export function openToolbox(use: ToolUse, tally: Tally, log: Log, wanted = MOST_CALLS): Toolbox {
  const most = Math.min(MOST_CALLS, wanted)
  const opened = new Map<string, { tool: Tool; ready: OpenTool }>()
  let calls = 0

  return {
    async open(owned, at) {
      for (const { tool, options } of owned) {
        if (!opened.has(tool.name)) opened.set(tool.name, { tool, ready: await tool.open(options, use, at) })
      }
    },
    async run({ id, name, arguments: text }, at, tell) {
      const entry = opened.get(name)
      if (entry === undefined) throw new Error(`${name} was not opened for this request`)
      const input = readArguments(text)
      const { server, shownInput } = entry.tool
      const call = { id, tool: name, input: shownInput(input), ...(server !== undefined && { server }) }
      await tell({ type: 'tool', phase: 'started', call })
      calls += 1
      const { tool, ready } = entry
      const result =
        calls > most
          ? tooMany(tool, input)
          : await measured(name, id, log, () =>
              ready.run(input, at).catch((thrown: unknown) => unforeseen(thrown, tool, input, at)),
            )
      if (calls <= most) await tally.toolRan(name, result, at.tenancy)
      await tell({ type: 'tool', phase: 'finished', call, outcome: result.outcome })
      return result
    },
    container: () => keeper()?.ready.container?.(),
    async release() {
      const entry = keeper()
      const known = entry?.ready.container?.()
      if (entry === undefined || known === undefined) return undefined
      opened.delete(entry.tool.name)
      try {
        return await entry.ready.close?.()
      } catch (thrown) {
        // it is there all the same, and its claim ends by itself
        unclosed(entry.tool)(thrown)
        return known
      }
    },
    close(options) {
      for (const { tool, ready } of opened.values()) void ready.close?.(options).catch(unclosed(tool))
      opened.clear()
    },
  }

  function keeper(): { tool: Tool; ready: OpenTool } | undefined {
    return Array.from(opened.values()).find(({ ready }) => ready.container?.() !== undefined)
  }

  function unclosed({ name }: Tool): (thrown: unknown) => void {
    return (thrown) => log.warn({ tool: name, err: thrown }, 'a tool was not closed')
  }

  /** What a tool did not foresee is told to the log alone; the model reads a fixed text and goes on (L-14). */
  function unforeseen(thrown: unknown, tool: Tool, input: JsonObject, { signal }: CallContext): ToolResult {
    if (signal.aborted || thrown instanceof CallLimitReached) throw thrown
    log.error({ tool: tool.name, err: thrown }, 'a tool failed in a way it does not know')
    return notRun(tool, input, 'Gateway tool execution failed', 'unavailable')
  }
}

const tooMany = (tool: Tool, input: JsonObject): ToolResult =>
  notRun(tool, input, 'tool call limit reached for this request', 'call_limit')

const notRun = (tool: Tool, input: JsonObject, text: string, tag: string): ToolResult => ({
  outcome: { text: toolError(text), isError: true, shown: tool.shownFailure(input, { tag }) },
  label: otariLabel(tool.name),
  priceKeys: otariPriceKeys(tool.name),
})

/** Text that is no JSON object counts as one without members, and is never mended: the tool then says what it misses (L-15). */
function readArguments(text: string): JsonObject {
  try {
    const input: unknown = JSON.parse(text)
    return typeof input === 'object' && input !== null && !Array.isArray(input) ? (input as JsonObject) : {}
  } catch {
    return {}
  }
}
