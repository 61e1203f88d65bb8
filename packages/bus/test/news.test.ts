import { broadcast } from '@tollgate/contracts'
import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { kinds, listLog, openSystem } from './open-buses.ts'

const changed = broadcast({ subject: 'tg.v1.changed.test', event: z.object({ key: z.string().optional() }) })
const other = broadcast({ subject: 'tg.v1.changed.other', event: z.object({}) })

describe.each(kinds)('news over a %s bus', (kind) => {
  test('reach every listener, also those of the process that tells them', async () => {
    const join = openSystem(kind)
    const one = await join('one')
    const two = await join('two')
    const heard: string[] = []
    one.listen(changed, ({ key }) => heard.push(`first ${key}`))
    one.listen(changed, ({ key }) => heard.push(`second ${key}`))
    two.listen(changed, ({ key }) => heard.push(`third ${key}`))
    two.listen(other, () => heard.push('other'))
    await expect
      .poll(() => {
        one.announce(changed, { key: 'k' })
        return new Set(heard)
      })
      .toEqual(new Set(['first k', 'second k', 'third k']))
  })

  test('that one listener chokes on reach the others', async () => {
    const { log, lines } = listLog()
    const join = openSystem(kind, { log })
    const bus = await join('one')
    const heard: unknown[] = []
    bus.listen(changed, () => {
      throw new Error('a listener at fault')
    })
    bus.listen(changed, (event) => heard.push(event))
    bus.announce(changed, {})
    await expect.poll(() => heard).toEqual([{}])
    await expect.poll(() => lines.filter(({ level }) => level === 'error')).toHaveLength(1)
  })

  test('of a shape that a listener does not know are passed over', async () => {
    const { log, lines } = listLog()
    const join = openSystem(kind, { log })
    const bus = await join('one')
    const heard: unknown[] = []
    bus.listen({ ...changed, event: z.object({ key: z.literal('known') }) }, (event) => heard.push(event))
    bus.announce(changed, { key: 'strange' })
    bus.announce(changed, { key: 'known' })
    await expect.poll(() => heard).toEqual([{ key: 'known' }])
    expect(lines.map(({ level }) => level)).toContain('warn')
  })

  test('are told to nobody once the bus is closed, and do not fail', async () => {
    const join = openSystem(kind)
    const bus = await join('one')
    await bus.drain(Date.now())
    expect(() => bus.announce(changed, {})).not.toThrow()
  })
})
