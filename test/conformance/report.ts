import { provenBy, readCatalogue } from './catalogue.ts'
import { runSuite } from './results.ts'

/**
 * Runs the suite and prints, for each area of docs/requirements, which rules have a passing test and which have none.
 * A title names what its test proves, that of a group what all of its tests do. A rule with a failing test counts as
 * failing whatever else passes. Arguments are vitest file filters.
 */
const results = runSuite(process.argv.slice(2))
const outcomes = new Map<string, { passed: number; failed: number; files: Set<string> }>()
for (const { titles, passed, file } of results) {
  for (const id of new Set(titles.flatMap(provenBy))) {
    const outcome = outcomes.get(id) ?? { passed: 0, failed: 0, files: new Set<string>() }
    outcome[passed ? 'passed' : 'failed']++
    outcome.files.add(file)
    outcomes.set(id, outcome)
  }
}

const areas = readCatalogue()
const known = new Set(areas.flatMap(({ ids }) => ids))
let proven = 0
for (const { title, name, ids } of areas) {
  const by = (wanted: 'passing' | 'failing' | 'none') => ids.filter((id) => state(id) === wanted)
  proven += by('passing').length
  console.log(`\n${title} (docs/requirements/${name}.md): ${by('passing').length} of ${ids.length} have a passing test`)
  for (const id of by('passing')) console.log(`  ${id.padEnd(8)} ${[...(outcomes.get(id)?.files ?? [])].join(', ')}`)
  if (by('failing').length > 0) console.log(`  FAILING  ${by('failing').join(' ')}`)
  if (by('none').length > 0) console.log(`  no test  ${by('none').join(' ')}`)
}
const unread = results.filter(({ titles }) => titles.length === 0).map(({ file }) => file)
if (unread.length > 0) console.log(`\nfiles that could not be run: ${unread.join(' ')}`)
const strangers = [...outcomes.keys()].filter((id) => !known.has(id) && !/^V[A-Z]?-/.test(id))
if (strangers.length > 0) console.log(`\nids in test titles that the catalogue does not know: ${strangers.join(' ')}`)
console.log(`\n${proven} of ${known.size} rules have a passing test`)
process.exitCode = strangers.length > 0 || results.some(({ passed }) => !passed) ? 1 : 0

function state(id: string): 'passing' | 'failing' | 'none' {
  const outcome = outcomes.get(id)
  if (!outcome) return 'none'
  return outcome.failed > 0 ? 'failing' : 'passing'
}
