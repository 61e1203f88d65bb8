import { expect, test } from 'vitest'
import { flat, getImage } from './image-world.ts'
import { openWorld, readingBegins, serving, textOf } from './world.ts'

/** Interlaced, so that all of it lies in memory: 108 MB, and a good part of a second of work. */
const heavy = await flat(6_000, 6_000).png({ progressive: true, compressionLevel: 1 }).toBuffer()
const small = await flat(4, 4).png().toBuffer()
const site = serving({
  '/heavy': ['image/png', heavy],
  '/small': ['image/png', small],
  '/page': ['text/plain', 'a page'],
})
const IMAGE = 'http://site.test/small'

test('F-26 an image that takes more memory than there is fails alone', async () => {
  const world = await openWorld(site, { settings: { imageMemoryBytes: 150 * 1024 * 1024 } })
  const failing = getImage(world, 'http://site.test/heavy')
  expect(textOf(await world.fetch('http://site.test/page'))).toBe('a page')
  expect(await failing).toMatchObject({ failure: 'extraction_failed', reason: 'memory' })
  expect(await getImage(world, IMAGE)).toMatchObject({ status: 'ok', width: 4 })
})

test('F-26 an image that takes too long fails alone, and its process is replaced', async () => {
  const world = await openWorld(site, { settings: { imageMs: 50 } })
  expect(await getImage(world, 'http://site.test/heavy')).toMatchObject({
    failure: 'extraction_failed',
    reason: 'time',
  })
  expect(await getImage(world, IMAGE)).toMatchObject({ status: 'ok' })
  expect(world.hosts).toHaveLength(3)
})

test('F-26 a process that is killed fails the image it was on, and no other', async () => {
  const world = await openWorld(site)
  expect(world.hosts).toHaveLength(1) // none for images before the first comes
  expect(await getImage(world, IMAGE)).toMatchObject({ status: 'ok' })
  const host = world.hosts[1] ?? expect.fail()
  const begun = readingBegins(host)
  const dying = getImage(world, 'http://site.test/heavy')
  await begun
  const waiting = getImage(world, IMAGE)
  host.kill('SIGKILL')
  expect(await dying).toMatchObject({ failure: 'extraction_failed' })
  expect(await waiting).toMatchObject({ status: 'ok' })
})

test('a drain lets a running image end', async () => {
  const world = await openWorld(site, { settings: { imageMs: 30_000 } })
  await getImage(world, IMAGE)
  const begun = readingBegins(world.hosts[1] ?? expect.fail())
  const running = getImage(world, 'http://site.test/heavy')
  await begun
  const closing = [world.bus.drain(Date.now() + 50_000), world.worker.close(Date.now() + 50_000)]
  expect(await running).toMatchObject({ status: 'ok', scaled: { width: 1_568, height: 1_568 } })
  expect(await Promise.all(closing)).toEqual([true, true])
})
