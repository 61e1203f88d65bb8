import type { ModelEvent } from '../../conversation/events.ts'
import type { ToolCallDelta } from './chunk.ts'
import { callLabels } from './labels.ts'

/** The calls of one answer, put together from fragments in whatever manner the upstream cuts and labels them. */
export interface CallReader {
  /** A fragment; `whole` where it is an entry of a finished message and no further one belongs to it. */
  fragment(delta: ToolCallDelta, whole: boolean, out: ModelEvent[]): void
  /** Closes what is open. False when a call never got a name. */
  end(out: ModelEvent[]): boolean
  count(): number
}

interface OpenCall {
  /** The block's index; undefined until id and name are known. */
  block: number | undefined
  /** Arguments that came before them (BR-007). */
  early: string
  builtin: boolean
  argued: boolean
}

export function callReader(nextBlock: () => number): CallReader {
  const label = callLabels()
  const calls: OpenCall[] = []

  return {
    fragment(delta, whole, out) {
      const { position, id, name } = label(delta, whole)
      calls[position] ??= { block: undefined, early: '', builtin: false, argued: false }
      const call = calls[position]
      call.builtin ||= delta.type === 'builtin_function'
      const args = delta.function?.arguments ?? ''
      if (call.block !== undefined) {
        if (args) argue(call, call.block, args, out)
        return
      }
      call.early += args
      if (!name) return
      call.block = nextBlock()
      out.push({
        type: 'open',
        index: call.block,
        block: { kind: 'call', id, name, ...(call.builtin && { builtin: true }) },
      })
      if (call.early) argue(call, call.block, call.early, out)
    },

    end(out) {
      for (const call of calls) {
        if (call.block === undefined) return false
        if (!call.argued) argue(call, call.block, '{}', out)
        out.push({ type: 'close', index: call.block })
      }
      return true
    },

    count: () => calls.length,
  }
}

function argue(call: OpenCall, index: number, text: string, out: ModelEvent[]): void {
  call.argued = true
  out.push({ type: 'delta', index, text })
}
