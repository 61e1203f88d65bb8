import type { Bus } from '@tollgate/bus'
import {
  apiKeyText,
  sandboxCredential,
  sandboxCredentialClear,
  sandboxCredentialGet,
  sandboxCredentialPut,
  sandboxCredentialReencrypt,
} from '@tollgate/contracts'
import type { FastifyPluginCallbackZod } from 'fastify-type-provider-zod'
import { z } from 'zod'
import { operatorOnly } from '../auth/authenticate.ts'

const PATH = '/tool-settings/sandbox/credential'
const ANSWER_MS = 5_000
const soon = () => ({ deadline: Date.now() + ANSWER_MS })

const wanted = z.strictObject({
  api_key: apiKeyText.nullable().describe('Null clears it, and the one of the environment is in force again'),
})
const counts = sandboxCredentialReencrypt.output

/** The key of the hosted sandbox: stored sealed, shown by its last four, the operator's alone (CFG-53). */
export const sandboxCredentialRoutes =
  ({ bus }: { bus: Bus }): FastifyPluginCallbackZod =>
  (app, _options, done) => {
    const schema = { tags: ['tool settings'], response: { 200: sandboxCredential } }
    app.get(
      PATH,
      { schema: { ...schema, summary: 'Which key of the hosted sandbox is in force' }, onRequest: operatorOnly },
      () => bus.call(sandboxCredentialGet, {}, soon()),
    )
    app.put(
      PATH,
      { schema: { ...schema, summary: 'Store a key of the hosted sandbox', body: wanted }, onRequest: operatorOnly },
      ({ body: { api_key: apiKey } }) =>
        apiKey === null
          ? bus.call(sandboxCredentialClear, {}, soon())
          : bus.call(sandboxCredentialPut, { apiKey }, soon()),
    )
    app.delete(
      PATH,
      { schema: { ...schema, summary: 'Clear the stored key of the hosted sandbox' }, onRequest: operatorOnly },
      () => bus.call(sandboxCredentialClear, {}, soon()),
    )
    app.post(
      `${PATH}/reencrypt`,
      {
        schema: { tags: schema.tags, summary: 'Bring it under the first secret key', response: { 200: counts } },
        onRequest: operatorOnly,
      },
      () => bus.call(sandboxCredentialReencrypt, {}, soon()),
    )
    done()
  }
