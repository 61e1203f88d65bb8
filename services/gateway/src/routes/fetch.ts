import { Fault } from '@tollgate/contracts'
import { pageArguments, readPage } from '@tollgate/mcp-web'
import type { FastifyPluginCallbackZod } from 'fastify-type-provider-zod'
import { z } from 'zod'
import { actFor } from '../auth/acting-user.ts'
import { tenancyOf } from '../auth/tenancy.ts'
import { requestEnds } from '../conversation/request-end.ts'
import { type DirectNeeds, directCall } from '../direct/direct-call.ts'
import { servedHere } from '../direct/served-here.ts'
import { refuseWebAccess } from '../policies/refusals.ts'
import { pageAnswer, pageAnswerOf } from './page-answer.ts'
import { shortText } from './wire.ts'

const body = z.object({
  ...pageArguments.shape,
  pdf_page: z.int().positive().optional().describe('First page of a PDF to read; next_pdf_page of the part before'),
  user: shortText.optional().describe('Whom the call is for; only with the master key'),
})

const schema = {
  tags: ['tools'],
  summary: 'Read a web page',
  description:
    'One page as text, Markdown or HTML, without a model: the options of the MCP tool `fetch_webpage`, PDFs included. Priced as a call of `otari:web_fetch`; a failure costs nothing.',
  body,
  response: { 200: pageAnswer },
}

/** One deadline for everything on the network; what `otari_web_fetch` keeps to in other respects holds here too (F-18 to F-23). */
const NETWORK_MS = 30_000

/** `POST /fetch`: one page, without a model. */
export const fetchRoute =
  (needs: DirectNeeds, cut: AbortSignal): FastifyPluginCallbackZod =>
  (app, _options, done) => {
    const { bus, settings, rateLimit } = needs
    const endOf = requestEnds(cut)
    app.post('/fetch', { schema }, async (request, reply) => {
      const { body: wanted, identity, id } = request
      const end = endOf(reply, settings.requestTimeoutMs)
      try {
        const acting = await actFor(identity, wanted.user, { dialect: 'chat', ...needs })
        if (!settings.webFetchEnabled) {
          throw new Fault(
            'forbidden',
            'web fetch is disabled on this gateway. Set OTARI_WEB_FETCH_ENABLED=true on the gateway.',
          )
        }
        const { web } = await needs.policies.of(acting.workspace)
        refuseWebAccess(web, 'web access')
        const outcome = await directCall(
          needs,
          {
            ...servedHere.web_fetch,
            endpoint: '/api/v1/fetch',
            tenancy: tenancyOf(acting, id),
            budgetExempt: acting.budgetExempt,
            signal: end.signal,
            deadline: end.deadline,
            lastCheck: () => rateLimit.take(acting),
          },
          (at) =>
            readPage(bus, wanted, { timeoutMs: NETWORK_MS, pdfPage: wanted.pdf_page }, { ...at, domains: web.domains }),
        )
        if (!outcome.ok) throw new Fault(outcome.failure, outcome.message, { cause: outcome.cause })
        return pageAnswerOf(outcome.value, wanted)
      } finally {
        end.done()
      }
    })
    done()
  }
