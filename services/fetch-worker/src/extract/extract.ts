import { decode } from './charset.ts'
import { hasHtmlBeginning, looksBinary, type Reading, readingOf, sniffBytes, startsLikeHtml } from './content-type.ts'
import { isFeed, readFeed } from './feed.ts'
import { noAssets } from './html/assets.ts'
import { readHtml } from './html/read.ts'
import type { Extracted, ExtractJob } from './job.ts'
import { notices } from './notices.ts'
import { readPdf } from './pdf/read.ts'
import { cleanLines, fitBytes } from './text.ts'

/** Reads a body as what it is. Runs in a thread of its own, which may be ended at any moment. */
export async function extract(job: ExtractJob): Promise<Extracted> {
  const reading = readingOf(job.contentType)
  const sniffed = sniffBytes(job.bytes)
  if (reading === undefined) return { status: 'failed', failure: 'unsupported' }
  if (job.bytes.length === 0) return finish(job, plain(''))
  if (reading === 'pdf' || sniffed === 'pdf') {
    return job.isCut ? { status: 'failed', failure: 'cut' } : finish(job, await readPdf(job))
  }
  if (sniffed === 'binary') return { status: 'failed', failure: 'unsupported' }
  const source = decode(job.bytes, job.contentType, job.isCut)
  const isDeclared = reading !== 'sniff' && reading !== 'sniff-document'
  if (looksBinary(source, isDeclared)) return { status: 'failed', failure: 'unsupported' }
  return finish(job, readText(job, reading, source))
}

function readText(job: ExtractJob, reading: Exclude<Reading, 'pdf'>, source: string): Extracted {
  switch (reading) {
    case 'html':
      // A page without a single tag is text that was sent under the wrong name.
      return /<[a-z!/?]/i.test(source) ? readHtml(source, job) : plain(source)
    case 'sniff-document':
      return startsLikeHtml(source) ? readHtml(source, job) : { status: 'failed', failure: 'unsupported' }
    case 'sniff':
      return hasHtmlBeginning(source) ? readHtml(source, job) : plain(source)
    case 'text':
      return startsLikeHtml(source) ? readHtml(source, job) : plain(source)
    case 'xml':
      if (job.feeds !== 'as-is' && isFeed(source)) return readFeed(source, job.url)
      return startsLikeHtml(source) ? readHtml(source, job) : plain(source)
    default:
      return reading satisfies never
  }
}

const plain = (source: string): Extracted => ({ status: 'ok', kind: 'text', text: source, notices: [] })

/** Every text leaves clean and bounded, and says what was cut (F-23, F-34, F-35). */
function finish(job: ExtractJob, result: Extracted): Extracted {
  if (result.status === 'failed') return result
  const { text, isCut } = fitBytes(cleanLines(result.text), job.limits.textBytes)
  const cuts = [...(job.isCut ? [notices.source] : []), ...(isCut ? [notices.parser] : [])]
  const said = new Set([...result.notices, ...cuts])
  if (text.trim() === '' && said.size === 0) said.add(notices.empty)
  const title =
    result.title === undefined ? undefined : cleanLines(result.title).replace(/\s+/g, ' ').trim().slice(0, 500)
  const { title: _title, ...rest } = result
  const assets = job.assets ? { assets: result.assets ?? noAssets } : {}
  return { ...rest, text, notices: [...said], ...(title ? { title } : {}), ...assets }
}
