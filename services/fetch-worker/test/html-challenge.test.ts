import { expect, test } from 'vitest'
import { read } from './reading.ts'

const HTML = 'text/html; charset=utf-8'
const blocked = { status: 'failed', failure: 'bot_protection' }

test.each([
  ['/cdn-cgi/challenge-platform/h/b/orchestrate/chl_page/v1?ray=8', 'Just a moment...'],
  ['/cdn-cgi/challenge-platform/h/g/orchestrate/managed/v1', ''],
  ['/cdn-cgi/challenge-platform/scripts/jsd/main.js', 'Just a moment...'],
])(
  'BR-101 a page that only runs %s under the title %j is a challenge, whatever it is wanted as',
  async (src, title) => {
    const page = `<!doctype html><title>${title}</title><body><p>One second.</p><script src="${src}"></script>`
    for (const format of ['text', 'markdown', 'html'] as const)
      expect(await read(page, HTML, { format })).toEqual(blocked)
  },
)

test('BR-101 a short page that is only watched by such a script is a page, and so is a long one that runs it', async () => {
  const watched =
    '<title>Hours</title><p>Open from 9 to 5.</p><script src="/cdn-cgi/challenge-platform/scripts/jsd/main.js"></script>'
  expect(await read(watched, HTML)).toMatchObject({ status: 'ok', text: 'Open from 9 to 5.' })
  const words = '<p>A paragraph of the page, with words enough to be one.</p>'.repeat(40)
  const long = `<title>Page</title>${words}<script src="/cdn-cgi/challenge-platform/h/b/orchestrate/x"></script>`
  expect(await read(long, HTML)).toMatchObject({ status: 'ok' })
})
