import type { Bus } from '@tollgate/bus'
import { fetchImage as fetchImageRpc } from '@tollgate/contracts'
import { z } from 'zod'
import { type CallAt, failed, type Outcome, unanswered } from './call.ts'
import { declaredAs, tellFetchFailure } from './fetch-failures.ts'
import { rulesOf } from './fetch-webpage.ts'
import type { WebSettings } from './settings.ts'
import { errorResult, type McpTool, mcpTool } from './tool.ts'

type ImageAnswer = z.output<typeof fetchImageRpc.output>
type Image = Extract<ImageAnswer, { status: 'ok' }>
type NoImage = Extract<ImageAnswer, { status: 'failed' }>

/** Beside the network's time: a turn in the queue, and decoding and scaling. */
const DECODING_MS = 30_000

/** `fetch_image`: a caption, then the image (WM-50). */
export const fetchImage = (bus: Bus, settings: WebSettings): McpTool =>
  mcpTool({
    name: 'fetch_image',
    description:
      'Fetch one image (PNG, JPEG, GIF or WebP) from a public http or https URL and look at it. A large image is scaled down first.',
    openWorld: true,
    arguments: z.object({ url: z.string().describe('The http or https URL of the image') }),
    async answer({ url }, run) {
      const outcome = await run('web_fetch', (at) => readImage(bus, url, settings, at))
      if (!outcome.ok) return errorResult(`fetch_image failed: ${outcome.message}`)
      const { mimeType, data } = outcome.value
      return {
        content: [
          { type: 'text', text: caption(url, outcome.value) },
          { type: 'image', data, mimeType },
        ],
      }
    },
  })

/** WM-51; the URL is the one the caller gave (WA-20). */
function caption(url: string, { format, width, height, scaled }: Image): string {
  const original = `Image from ${url}: ${format}, ${width}x${height} px`
  return scaled === undefined ? original : `${original}, scaled to ${scaled.width}x${scaled.height} for the model`
}

async function readImage(bus: Bus, url: string, settings: WebSettings, at: CallAt): Promise<Outcome<Image>> {
  const { ceilingMs: timeoutMs, maxImageBytes, maxEdgePx, maxEncodedBytes } = settings
  const rules = { ...rulesOf(settings), maxBodyBytes: maxImageBytes }
  try {
    const answer = await bus.call(
      fetchImageRpc,
      { tenancy: at.tenancy, url, policy: at.domains, rules, timeoutMs, maxEdgePx, maxEncodedBytes },
      { deadline: Math.min(at.deadline, Date.now() + timeoutMs + DECODING_MS), signal: at.signal },
    )
    return answer.status === 'ok' ? { ok: true, value: answer, label: answer.label } : noImage(answer)
  } catch (thrown) {
    return unanswered(thrown, 'the fetch', at)
  }
}

function noImage(answer: NoImage): Outcome<never> {
  const { label } = answer
  const problem = tellProblem(answer)
  if (problem !== undefined) return failed('invalid_value', problem, { label })
  const { failure, message } = tellFetchFailure(answer)
  return failed(failure, message, { label })
}

const KINDS = 'only PNG, JPEG, GIF and WebP are shown'

function tellProblem(answer: NoImage): string | undefined {
  switch (answer.imageProblem) {
    case 'not_an_image':
      return answer.declared?.contentType === undefined
        ? `not an image; ${KINDS}`
        : `not an image: ${declaredAs(answer)}; ${KINDS}`
    case 'mislabelled':
      return 'refused as mislabelled: the content is not the image its declared type says'
    case 'svg':
      return `SVG is not shown, since it is a document that a renderer would have to run; ${KINDS}`
    case 'too_many_pixels':
      return 'the image has more than 64 million pixels'
    case 'damaged':
      return 'the image is damaged'
    case undefined:
      return answer.failure === 'unsupported_type' ? `not an image: ${declaredAs(answer)}; ${KINDS}` : undefined
    default:
      return answer.imageProblem satisfies never
  }
}
