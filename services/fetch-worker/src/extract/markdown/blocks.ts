/** Writes blocks one after the other: what stands before each line, and how much room is between two of them. */
export interface BlockWriter {
  /** A block's lines, already Markdown. */
  write(markdown: string): void
  /** A block that holds blocks. */
  enter(container: Container): void
  leave(): void
  isFull(): boolean
  text(): string
  /** The bullet for a list that opens here: another than that of a list which ended just before, or the two would be one. */
  bullet(): '-' | '*'
}

export interface Container {
  /** What the first line starts with; never written when there is none. */
  first: string
  /** What every further line starts with. */
  rest: string
  /** Its first block stands directly below what was before it. */
  isTight: boolean
}

export function openBlocks(maxCharacters: number): BlockWriter {
  const lines: string[] = []
  let size = 0
  let full = false
  const containers: (Container & { isStarted: boolean })[] = []
  /** A bulleted list has just ended, and nothing was written since. */
  let endedBullets = false
  let lastBullet: '-' | '*' = '*'

  const push = (line: string): void => {
    lines.push(line)
    size += line.length + 1
    if (size > maxCharacters) full = true
  }
  const restPrefix = (depth: number): string =>
    containers
      .slice(0, depth)
      .map(({ rest }) => rest)
      .join('')

  return {
    write(markdown) {
      if (full || markdown === '') return
      const started = containers.findIndex(({ isStarted }) => !isStarted)
      const fresh = started >= 0 ? containers[started] : undefined
      const isTight = fresh?.isTight === true
      if (lines.length > 0 && !isTight) push(restPrefix(started >= 0 ? started : containers.length).trimEnd())
      const [head = '', ...tail] = markdown.split('\n')
      const prefix = containers.map((each) => (each.isStarted ? each.rest : each.first)).join('')
      for (const each of containers) each.isStarted = true
      push((prefix + head).trimEnd() === '' ? '' : prefix + head)
      const rest = restPrefix(containers.length)
      for (const line of tail) push(line === '' ? rest.trimEnd() : rest + line)
      endedBullets = false
    },
    enter(container) {
      containers.push({ ...container, isStarted: false })
    },
    leave() {
      const left = containers.pop()
      endedBullets = left?.isStarted === true && /^[-*] /.test(left.first)
    },
    bullet() {
      lastBullet = endedBullets && lastBullet === '-' ? '*' : '-'
      return lastBullet
    },
    isFull: () => full,
    text: () => lines.join('\n'),
  }
}
