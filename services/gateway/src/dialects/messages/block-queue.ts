/**
 * Blocks one after the other, as this dialect's clients expect them: while one is open, what comes of later ones waits
 * (BR-005), in the order in which they were opened. What waits is part of an answer that is held whole anyway.
 */
export interface BlockQueue {
  open(key: number, frame: (index: number) => string): string
  write(key: number, frame: (index: number) => string): string
  /** `key` undefined: whatever stands open. */
  close(key: number): string
  /** Something whole between the blocks. */
  whole(frames: (index: number) => string): string
  /** The block that is written now. */
  current(): number | undefined
}

interface Waiting {
  key: number
  index: number
  frames: string
  closed: boolean
}

export function blockQueue(stop: (index: number) => string): BlockQueue {
  const blocks: Waiting[] = []
  let free = 0

  const find = (key: number): Waiting | undefined => blocks.findLast((block) => block.key === key && !block.closed)

  /** What may go out now: all of the first block, and of those behind it once it is closed. */
  function flush(): string {
    let out = ''
    for (let first = blocks[0]; first; first = blocks[0]) {
      out += first.frames
      first.frames = ''
      if (!first.closed) break
      blocks.shift()
    }
    return out
  }

  return {
    open(key, frame) {
      const index = free++
      blocks.push({ key, index, frames: frame(index), closed: false })
      return flush()
    },
    write(key, frame) {
      const block = find(key)
      if (!block) return ''
      block.frames += frame(block.index)
      return flush()
    },
    close(key) {
      const block = find(key)
      if (!block) return ''
      block.frames += stop(block.index)
      block.closed = true
      return flush()
    },
    whole(frames) {
      const index = free++
      blocks.push({ key: -1, index, frames: frames(index) + stop(index), closed: true })
      return flush()
    },
    current: () => blocks.find(({ closed }) => !closed)?.key,
  }
}
