import { Fault, type TokenCounts } from '@tollgate/contracts'
import { z } from 'zod'
import type { ToolActivity } from '../conversation/events.ts'
import type { Message, Part } from '../conversation/turn.ts'
import type { ModelProvider } from '../models/provider.ts'
import type { SeatTools } from '../models/seats.ts'
import type { CallContext } from '../tools/tool.ts'
import { isSearchTool } from './provider-tools.ts'
import type { Tally } from './tally.ts'
import type { ModelCall } from './transcript.ts'

/** Calls of tools that the model's backend runs, of one attempt. */
export interface ProviderCalls {
  /** Records what is owed for them (PE-29). Gives what a client may be shown. */
  made(calls: readonly ModelCall[], at: CallContext): Promise<ToolActivity[]>
  /** Why the backend is not to go on with them, in words for the model; undefined: it may. `spent`: tokens of the round. */
  refusal(calls: readonly ModelCall[], spent: TokenCounts | undefined): string | undefined
}

/** What is read of the arguments; what is not a count is unknown, and never zero (PE-26). */
const told = z.object({
  query: z.string().optional().catch(undefined),
  usage: z
    .object({ total_tokens: z.int().nonnegative().optional().catch(undefined) })
    .optional()
    .catch(undefined),
})

/** Of one attempt: a settlement, which names each call, must fit into a message. */
const MOST_RECORDED = 150

const TOO_LARGE = 'The result of that search is too large to be read. Answer now from what you already know.'
const TOO_MANY = 'No more searches are available. Answer now from the results you already have.'

export function providerCalls(
  seat: SeatTools | undefined,
  provider: Pick<ModelProvider, 'name'>,
  tally: Pick<Tally, 'toolRan'>,
): ProviderCalls {
  let count = 0
  /** Said once, it holds for the rest of the attempt: the tool is not offered any more. */
  let refused: string | undefined

  function judge(calls: readonly ModelCall[], spent: TokenCounts | undefined): string | undefined {
    if (seat === undefined) return undefined
    if (count > seat.maxCalls) return TOO_MANY
    const sizes = calls.map(({ arguments: text }) => readArguments(text).resultTokens ?? 0)
    const { maxResultTokens = Infinity, contextTokens = Infinity } = seat
    if (sizes.some((size) => size > maxResultTokens)) return TOO_LARGE
    const next = sizes.reduce((sum, size) => sum + size, spent === undefined ? 0 : promptAfter(spent))
    return next > contextTokens ? TOO_LARGE : undefined
  }

  return {
    async made(calls, at) {
      if (count + calls.length > MOST_RECORDED)
        throw new Fault('upstream', `the model called tools of its backend more than ${MOST_RECORDED} times`)
      const shown: ToolActivity[] = []
      for (const { id, name, arguments: text } of calls) {
        count += 1
        const { query, resultTokens } = readArguments(text)
        await recordCall(tally, seat, provider, name, resultTokens, at)
        const call = { id, tool: name, input: {}, byProvider: true as const }
        const what = {
          kind: 'provider_tool' as const,
          name,
          search: isSearchTool(name),
          ...(query !== undefined && { query }),
          ...(resultTokens !== undefined && { resultTokens }),
        }
        shown.push(
          { type: 'tool', phase: 'started', call },
          { type: 'tool', phase: 'finished', call, outcome: { text: '', isError: false, shown: what } },
        )
      }
      return shown
    },
    refusal(calls, spent) {
      if (calls.length > 0) refused ??= judge(calls, spent)
      return calls.length > 0 ? refused : undefined
    },
  }
}

/** One call on the bill, by who ran it (PE-28): at the seat's fee, else by a price row of that label. */
export function recordCall(
  tally: Pick<Tally, 'toolRan'>,
  seat: SeatTools | undefined,
  { name: instance }: Pick<ModelProvider, 'name'>,
  name: string,
  resultTokens: number | undefined,
  { tenancy }: CallContext,
): Promise<void> {
  const label = `${instance}:${name}`
  const reportedCost = seat?.fees.get(name)
  const ran = { outcome: { isError: false }, label, priceKeys: [{ kind: 'model' as const, key: label }] }
  return tally.toolRan(name, { ...ran, resultTokens, reportedCost }, tenancy)
}

/** All that was asked and answered is in the next prompt. */
const promptAfter = ({ input, output, cacheRead, cacheWrite }: TokenCounts): number =>
  input + cacheRead + cacheWrite + output

function readArguments(text: string): { query: string | undefined; resultTokens: number | undefined } {
  let json: unknown
  try {
    json = JSON.parse(text)
  } catch {
    json = undefined // the backend wrote them for itself: they are sent back as they are, read or not
  }
  const { query, usage } = told.safeParse(json).data ?? {}
  return { query, resultTokens: usage?.total_tokens }
}

/** The answer that a backend's tool waits for: its own arguments, to the byte (PE-10..PE-12). */
export const echoOf = ({ id, name, arguments: text }: ModelCall): Message => ({
  role: 'tool',
  parts: [{ type: 'result', callId: id, name, text, isError: false }],
})

/** What the model said, for its backend to go on from: with everything it said beside the calls, empty or not (PE-12). */
export function wholeMessage(message: Message): Message {
  const text = joined(message.parts, 'text')
  const thinking = joined(message.parts, 'thinking')
  const calls = message.parts.flatMap((part) => (part.type === 'call' ? [part] : []))
  const value = {
    role: 'assistant',
    content: text,
    ...(thinking !== '' && { reasoning_content: thinking }),
    tool_calls: calls.map(({ id, name, arguments: input, builtin }) => ({
      id,
      type: builtin ? 'builtin_function' : 'function',
      function: { name, arguments: input },
    })),
  }
  return { ...message, raw: { dialect: 'chat', value } }
}

const joined = (parts: readonly Part[], type: 'text' | 'thinking'): string =>
  parts.flatMap((part) => (part.type === type ? part.text : [])).join('')

/** The message without these calls, as anyone else may know it (PE-16); undefined where it says nothing then. */
export function withoutCalls(message: Message, calls: readonly ModelCall[]): Message | undefined {
  if (calls.length === 0) return message
  const ids = new Set(calls.map(({ id }) => id))
  const parts = message.parts.filter((part) => part.type !== 'call' || !ids.has(part.id))
  return parts.some(({ type }) => type !== 'thinking') ? { role: message.role, parts } : undefined
}
