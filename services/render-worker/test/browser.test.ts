import { openLog } from '@tollgate/telemetry'
import { describe, expect, onTestFinished, test } from 'vitest'
import { type BrowserEnd, openBrowsers } from '../src/browser.ts'
import { browserForTests } from './browser-for-tests.ts'

const { executable, why } = browserForTests()
if (executable === undefined) console.warn(`not tested in a real browser: ${why}`)

function keep() {
  const ends: BrowserEnd[] = []
  const browsers = openBrowsers({
    executable: executable as string,
    isSandboxed: process.getuid?.() !== 0,
    memoryBytes: Number.MAX_SAFE_INTEGER,
    pagesPerBrowser: 2,
    log: openLog({ service: 'render-worker', level: 'silent' }),
    onEnd: (end) => ends.push(end),
  })
  onTestFinished(() => browsers.close())
  return { browsers, ends }
}

describe.skipIf(executable === undefined)('WM-07 browsers that end after their pages', () => {
  test('the end of one leaves the next in use, so that none is forgotten', async () => {
    const { browsers, ends } = keep()
    const [first, second] = [await browsers.take(), await browsers.take()]
    expect(second.browser).toBe(first.browser)
    const third = await browsers.take()
    expect(third.browser).not.toBe(first.browser)
    first.giveBack()
    second.giveBack()
    expect(ends).toEqual(['worn'])
    const fourth = await browsers.take()
    expect(fourth.browser).toBe(third.browser)
    third.giveBack()
    fourth.giveBack()
    expect(ends).toEqual(['worn', 'worn'])
    for (const { browser } of [first, third]) await expect.poll(() => browser.isConnected()).toBe(false)
  }, 60_000)

  test('one that was ended under its pages is followed by another', async () => {
    const { browsers, ends } = keep()
    const lease = await browsers.take()
    lease.kill('stuck')
    expect(lease.ended).toBe('stuck')
    const next = await browsers.take()
    expect(next.browser).not.toBe(lease.browser)
    expect(next.browser.isConnected()).toBe(true)
    lease.giveBack()
    expect(next.ended).toBeUndefined()
    expect(ends).toEqual(['stuck'])
  }, 60_000)
})
