import { Fault } from '@tollgate/contracts'
import type { JsonObject, Turn } from '../conversation/turn.ts'
import { codeExecution } from '../tools/code-execution.ts'
import { type ContainerWish, readContainer } from '../tools/container.ts'
import { spellNumbers } from '../tools/declared-members.ts'
import { toolOfType } from '../tools/registry.ts'
import type { Declaration } from '../tools/tool.ts'
import { toolForKeyword } from './keywords.ts'

/** An entry with its numbers as they were spelled, which only a body that counts uses has to be read again for. */
export function declarationOf(entry: JsonObject, at: number, bodyText: string): Declaration {
  if (!Object.hasOwn(entry, 'max_uses')) return { entry, spelled: entry }
  const { tools } = spellNumbers(bodyText) as { tools: JsonObject[] }
  return { entry, spelled: tools[at] ?? {} }
}

/** The container a request asks for, at its top or on the entry that runs code; two different ones are a mistake (C-07). */
export function containerOf(turn: Turn): ContainerWish {
  const onEntries = turn.tools.flatMap((entry) =>
    entry.kind === 'typed' && (toolOfType(entry.type) ?? toolForKeyword(entry.type)) === codeExecution
      ? [readContainer(entry.raw.container)]
      : [],
  )
  const wishes = [readContainer(turn.raw.container), ...onEntries].filter(({ kind }) => kind !== 'none')
  const [first = { kind: 'none' }] = wishes
  if (onEntries.length > 0 && wishes.some((wish) => !same(wish, first))) {
    throw new Fault('invalid_request', 'container is given twice, and the two differ')
  }
  return first
}

const same = (one: ContainerWish, other: ContainerWish): boolean =>
  one.kind === other.kind && (one.kind !== 'id' || other.kind !== 'id' || one.id === other.id)
