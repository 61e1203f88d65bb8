import { readdirSync, readFileSync } from 'node:fs'
import { basename, join } from 'node:path'

export interface Area {
  /** File name under docs/requirements without its ending. */
  name: string
  title: string
  /** In the order of the document. */
  ids: string[]
}

const folder = join(import.meta.dirname, '../../docs/requirements')

/** The ids of the catalogue, by document. Throws when an id stands twice: a test title must name one rule. */
export function readCatalogue(): Area[] {
  const seen = new Map<string, string>()
  return readdirSync(folder)
    .filter((file) => file.endsWith('.md'))
    .sort()
    .map((file) => {
      const text = readFileSync(join(folder, file), 'utf8')
      const ids = [...text.matchAll(/^- \*\*([A-Z]+-[A-Z]?\d+)\*\* /gm)].map(([, id]) => id as string)
      for (const id of ids) {
        if (seen.has(id)) throw new Error(`${id} stands in ${seen.get(id)} and in ${file}`)
        seen.set(id, file)
      }
      return { name: basename(file, '.md'), title: /^# (.+)$/m.exec(text)?.[1] ?? file, ids }
    })
}

/**
 * The ids a title begins with: `F-22 refuses …` and `F-22 F-23 …` name what they prove. Numbers of attacks (`G4`), which are
 * of no rule, may stand among them.
 */
export function provenBy(title: string): string[] {
  const ids: string[] = []
  for (const word of title.split(/[\s,]+/)) {
    if (/^[A-Z]\d+$/.test(word)) continue
    if (!/^[A-Z]+-[A-Z]?\d+$/.test(word)) break
    ids.push(word)
  }
  return ids
}
