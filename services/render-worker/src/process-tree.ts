import { readdirSync, readFileSync } from 'node:fs'

interface Process {
  pid: number
  parent: number
  bytes: number
}

const PAGE_BYTES = 4_096

/** Every process of the machine, as far as it shows them (Linux); none elsewhere. */
function processes(): Process[] {
  return numbers().flatMap((pid) => {
    const stat = read(`/proc/${pid}/stat`)
    // the name in brackets may hold anything, brackets too
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
    return fields.length < 22 ? [] : [{ pid, parent: Number(fields[1]), bytes: Number(fields[21]) * PAGE_BYTES }]
  })
}

/** Memory of a process and all below it. What they share is counted for each of them. */
export function treeBytes(root: number): number {
  const all = processes()
  const own = new Set([root])
  for (let found = 1; found > 0; ) {
    found = 0
    for (const { pid, parent } of all) {
      if (own.has(pid) || !own.has(parent)) continue
      own.add(pid)
      found++
    }
  }
  return all.reduce((sum, { pid, bytes }) => (own.has(pid) ? sum + bytes : sum), 0)
}

/** The oldest process that was started with this argument. */
export const findProcess = (argument: string): number | undefined =>
  numbers()
    .sort((a, b) => a - b)
    .find((pid) => read(`/proc/${pid}/cmdline`).split(/[\0 ]/).includes(argument))

function numbers(): number[] {
  try {
    return readdirSync('/proc').map(Number).filter(Number.isInteger)
  } catch {
    return []
  }
}

/** A process may end while it is looked at. */
function read(path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return ''
  }
}
