import { describe, expect, test } from 'vitest'
import { chooseLevel } from '../src/extract/html/main/choose.ts'
import { logistic, openEnsemble } from '../src/extract/html/main/ensemble.ts'
import { binned } from '../training/bins.ts'
import { boost, randomFrom } from '../training/boost.ts'
import { label, wordsIn } from '../training/label.ts'

describe('the level from which on blocks are taken', () => {
  const taken = (likely: number[], words: number[]) => {
    const level = chooseLevel(Float64Array.from(likely), words)
    return likely.map((value) => value >= level)
  }

  test('lies between what is likely and what is not', () => {
    expect(taken([0.95, 0.02, 0.9, 0.05], [100, 300, 80, 50])).toEqual([true, false, true, false])
    expect(taken([0.9, 0.9, 0.9], [5, 5, 5])).toEqual([true, true, true])
    expect(taken([0.01, 0.2, 0.01], [50, 50, 50])).toEqual([false, true, false])
  })

  test('does not sink for a long list that is unlikely as a whole, though its blocks add up', () => {
    const article = Array.from({ length: 20 }, () => 0.97)
    const list = Array.from({ length: 500 }, () => 0.3)
    const found = taken([...article, ...list], [...article.map(() => 45), ...list.map(() => 11)])
    expect(found.slice(0, 20)).toEqual(article.map(() => true))
    expect(found.slice(20)).toEqual(list.map(() => false))
  })

  test('takes blocks without knowing anything of one over the other alike', () => {
    const same = Array.from({ length: 50 }, () => 0.5)
    expect(
      new Set(
        taken(
          same,
          same.map(() => 10),
        ),
      ).size,
    ).toBe(1)
    expect(taken([], [])).toEqual([])
  })
})

describe('trees', () => {
  const rows = 4_000
  const draw = randomFrom(3)
  const values = ['first', 'second', 'third'].map(() =>
    Float32Array.from({ length: rows }, () => Math.round(draw() * 500) / 10),
  )
  const [first = new Float32Array(), second = new Float32Array()] = values
  const labels = Float32Array.from({ length: rows }, (_, at) =>
    Number((first[at] as number) > 20 && (second[at] as number) <= 30),
  )
  const columns = values.map((each) => binned(each))
  const table = {
    names: ['first', 'second', 'third'],
    edges: columns.map(({ edges }) => edges),
    columns: columns.map(({ column }) => column),
    rows,
    pages: Int32Array.from({ length: rows }, (_, at) => at),
  }
  const growth = { trees: 30, leaves: 6, rate: 0.3, featureShare: 0.8, pageShare: 0.7, leafWeight: 1, damping: 1 }
  const grow = () => {
    const sums = new Float64Array(rows)
    const all = Int32Array.from({ length: rows }, (_, at) => at)
    const learnt = all.filter((at) => at % 2 === 0)
    const others = all.filter((at) => at % 2 === 1)
    const stored = boost(table, labels, new Float32Array(rows).fill(1), learnt, growth, randomFrom(5), { others, sums })
    return { stored, sums }
  }

  test('find a rule, also for rows they were not grown on', () => {
    const { sums } = grow()
    let wrong = 0
    for (let at = 1; at < rows; at += 2) if (logistic(sums[at] as number) > 0.5 !== (labels[at] === 1)) wrong++
    expect(wrong).toBeLessThan(rows / 2 / 50)
  })

  test('say the same when they come back from how they are stored', () => {
    const { stored, sums } = grow()
    const ensemble = openEnsemble(JSON.parse(JSON.stringify(stored)))
    for (let at = 0; at < rows; at += 7) {
      const row = Float32Array.from(ensemble.features, (name) => values[table.names.indexOf(name)]?.[at] as number)
      expect(ensemble.sum(row)).toBeCloseTo(sums[at] as number, 2)
    }
    expect(grow().stored).toEqual(stored)
  })
})

describe('how much of a block is main content', () => {
  const marks = (blocks: string[], reviewed: string) => [...label(blocks.map(wordsIn), wordsIn(reviewed))]
  const text = 'The river rises in the hills and runs to the sea. It passes many towns on its way there.'

  test('all of what is in the reviewed text, none of what is not', () => {
    expect(
      marks(
        ['Home', 'About us and our team', 'The river rises in the hills', 'and runs to the sea.', 'Share this page'],
        text,
      ),
    ).toEqual([0, 0, 1, 1, 0])
  })

  test('a part, when only a part of it is', () => {
    const [share] = marks(['Photo by somebody else entirely: It passes many towns on its way there.'], text)
    expect(share).toBeCloseTo(8 / 13)
  })

  test('a block that is said twice counts as often as it is in the text', () => {
    expect(
      marks(['It passes many towns', 'The river rises in the hills', 'It passes many towns'], text).filter(
        (mark) => mark > 0.5,
      ),
    ).toHaveLength(2)
    expect(marks([text, text], `${text} ${text}`)).toEqual([1, 1])
  })
})
