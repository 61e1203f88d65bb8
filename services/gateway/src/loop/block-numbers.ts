import type { BlockStart, ModelEvent } from '../conversation/events.ts'

type BlockEvent = ModelEvent & { type: 'open' | 'delta' | 'signature' | 'close' }

/**
 * Blocks of all rounds under one numbering without gaps: every round counts from 0 upstream, and calls that
 * stay here leave no trace.
 */
export function numberBlocks(hides: (call: BlockStart & { kind: 'call' }) => boolean) {
  let free = 0
  let numbers = new Map<number, number>()
  return {
    /** The event as the client may see it; undefined when it belongs to a hidden block or is held for the end. */
    pass(event: ModelEvent): ModelEvent | undefined {
      switch (event.type) {
        case 'extra':
          return event
        case 'open':
          if (event.block.kind === 'call' && hides(event.block)) return undefined
          numbers.set(event.index, free)
          free += 1
          return renumbered(event)
        case 'delta':
        case 'signature':
        case 'close':
          return renumbered(event)
        case 'start':
        case 'usage':
        case 'finish':
          return undefined
        default:
          return event satisfies never
      }
    },
    nextRound(): void {
      numbers = new Map()
    },
  }

  function renumbered(event: BlockEvent): BlockEvent | undefined {
    const index = numbers.get(event.index)
    if (index === undefined) return undefined
    return index === event.index ? event : { ...event, index }
  }
}
