/**
 * FI-13: the last segment of each name without what a shell or a path could trip over; equal ones are numbered
 * (`data.csv`, `data-2.csv`), whatever letters' case they were written in. A name depends on those before it alone, so
 * that it stays when a conversation goes on.
 */
export function workspaceNames(files: readonly { name: string }[]): string[] {
  const taken = new Set<string>()
  return files.map(({ name }) => {
    const plain = plainName(name)
    const dot = plain.lastIndexOf('.')
    const [stem, extension] = dot > 0 ? [plain.slice(0, dot), plain.slice(dot)] : [plain, '']
    let free = plain
    for (let number = 2; taken.has(free.toLowerCase()); number += 1) free = `${stem}-${number}${extension}`
    taken.add(free.toLowerCase())
    return free
  })
}

const MAX_NAME_CHARACTERS = 100

function plainName(name: string): string {
  const last = name.toWellFormed().split(/[/\\]/).at(-1) ?? ''
  const safe = last.replace(/[^\p{L}\p{N}\p{M} ._()+=@,-]/gu, '').replace(/^[\s.-]+|[\s.]+$/g, '')
  const characters = [...safe]
  if (characters.length <= MAX_NAME_CHARACTERS) return safe || 'file'
  const extension = /\.[^.]{1,16}$/.exec(safe)?.[0] ?? ''
  return characters.slice(0, MAX_NAME_CHARACTERS - [...extension].length).join('') + extension
}
