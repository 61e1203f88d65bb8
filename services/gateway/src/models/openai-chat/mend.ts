import { z } from 'zod'
import { chatChunk } from './chunk.ts'
import { callLabels } from './labels.ts'

/**
 * Puts right in place what strict clients stumble over in a chunk or an answer, and says whether it had to: a role that
 * is missing or repeated (BR-027, BR-038), calls without index or id (BR-036), and a turn with a call that does not end
 * for it (BR-023) or that ends twice (BR-012).
 */
export interface Mender {
  mend(json: MendableJson): boolean
  /** True while arguments wait for the name of their call. */
  nameless(): boolean
  /** A last chunk where the upstream sent none with a reason, though the stream was complete. */
  lastChunk(): MendableJson | undefined
}

/** A chunk that has the shape `chatChunk` tells; changed in place so that every other member stays as it came. */
export type MendableJson = z.input<typeof mendable>
export const mendable = z.custom<{
  choices?: MendableChoice[] | null
  usage?: unknown
  error?: unknown
  [name: string]: unknown
}>((value) => chatChunk.safeParse(value).success)

interface MendableChoice {
  index?: number | null
  delta?: MendableMessage | null
  message?: MendableMessage | null
  finish_reason?: string | null
  [name: string]: unknown
}
interface MendableMessage {
  role?: string | null
  tool_calls?: MendableCall[] | null
  [name: string]: unknown
}
type MendableCall = Parameters<ReturnType<typeof callLabels>>[0]

interface Choice {
  label: ReturnType<typeof callLabels>
  seen: Set<number>
  /** Arguments that came before id and name, by the place of their call (BR-007). */
  early: Map<number, string>
  spoke: boolean
  finished: boolean
}

export function chatMender(): Mender {
  const choices = new Map<number, Choice>()
  let head: Record<string, unknown> = {}

  function stateOf(choice: MendableChoice): Choice {
    const index = choice.index ?? 0
    const state = choices.get(index) ?? {
      label: callLabels(),
      seen: new Set(),
      early: new Map(),
      spoke: false,
      finished: false,
    }
    choices.set(index, state)
    return state
  }

  function mendRole(message: MendableMessage, state: Choice): boolean {
    const first = !state.spoke
    state.spoke = true
    if (first === (message.role != null)) return false
    if (first) message.role = 'assistant'
    else delete message.role
    return true
  }

  function mendCalls(message: MendableMessage, calls: MendableCall[], whole: boolean, state: Choice): boolean {
    let mended = false
    const held = new Set<MendableCall>()
    for (const call of calls) {
      if (call.type === 'custom') {
        state.seen.add(-1 - (call.index ?? 0))
        continue
      }
      const { position, id, name } = state.label(call, whole)
      const early = state.early.get(position) ?? ''
      if (name === '') {
        state.early.set(position, early + (call.function?.arguments ?? ''))
        held.add(call)
        continue
      }
      if (state.early.delete(position)) {
        call.function = { ...call.function, arguments: early + (call.function?.arguments ?? '') }
        mended = true
      }
      const first = !state.seen.has(position)
      state.seen.add(position)
      const wanted = {
        index: whole ? call.index : position,
        id: first || (call.id != null && call.id !== '' && call.id === id) ? id : undefined,
        type: first ? (call.type ?? 'function') : call.type,
      }
      if (call.index === wanted.index && call.id === wanted.id && call.type === wanted.type) continue
      Object.assign(call, wanted)
      if (wanted.id === undefined) delete call.id
      mended = true
    }
    if (held.size === 0) return mended
    message.tool_calls = calls.filter((call) => !held.has(call))
    if (message.tool_calls.length === 0) delete message.tool_calls
    return true
  }

  return {
    mend(json) {
      if (choices.size === 0) head = { id: json.id, object: json.object, created: json.created, model: json.model }
      let mended = false
      for (const choice of json.choices ?? []) {
        const state = stateOf(choice)
        const message = choice.message ?? choice.delta
        if (message) mended = mendRole(message, state) || mended
        if (message?.tool_calls)
          mended = mendCalls(message, message.tool_calls, choice.message != null, state) || mended
        if (!choice.finish_reason) continue
        if (state.finished) {
          // said again, and perhaps otherwise: a turn ends once (BR-012)
          choice.finish_reason = null
          mended = true
          continue
        }
        state.finished = true
        if (state.seen.size === 0 || choice.finish_reason !== 'stop') continue
        choice.finish_reason = 'tool_calls'
        mended = true
      }
      return mended
    },

    nameless: () => Array.from(choices.values()).some(({ early }) => early.size > 0),

    lastChunk() {
      const open = [...choices].filter(([, { finished }]) => !finished)
      if (open.length === 0) return undefined
      return {
        ...head,
        choices: open.map(([index, { seen }]) => ({
          index,
          delta: {},
          finish_reason: seen.size > 0 ? 'tool_calls' : 'stop',
        })),
      }
    },
  }
}
