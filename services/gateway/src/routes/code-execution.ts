import { Fault, type FileReference, type HeldContainer, sandboxLimit } from '@tollgate/contracts'
import type { FastifyReply, FastifyRequest } from 'fastify'
import type { FastifyPluginCallbackZod } from 'fastify-type-provider-zod'
import { z } from 'zod'
import { actFor } from '../auth/acting-user.ts'
import type { Identity } from '../auth/identity.ts'
import { tenancyOf } from '../auth/tenancy.ts'
import { type RequestEnd, requestEnds } from '../conversation/request-end.ts'
import { type DirectNeeds, directCall } from '../direct/direct-call.ts'
import { type CodeRan, type CodeWish, type RunListener, runCode } from '../direct/run-code.ts'
import { openRunStream } from '../direct/run-stream.ts'
import { servedHere } from '../direct/served-here.ts'
import { type Files, findFiles } from '../files/attachments.ts'
import { toolFiles } from '../files/tool-files.ts'
import { refuseCode } from '../policies/refusals.ts'
import type { Capabilities } from '../tools/capabilities.ts'
import { codeExecution } from '../tools/code-execution.ts'
import { keptContainer, readContainer } from '../tools/container.ts'
import { sessionSeconds } from '../tools/sandbox-session.ts'
import { shortText } from './wire.ts'

/** */
const MOST_SECONDS = 60
/** As JSON: a call of the sandbox takes 256 KiB, and this is most of one. */
const MOST_CODE_BYTES = 240 * 1024

const body = z
  .object({
    code: z.string().min(1).optional().describe('Python; state lasts as long as the sandbox'),
    command: z.string().min(1).optional().describe('A command line, in place of code'),
    container: z
      .string()
      .min(1)
      .max(256)
      .optional()
      .describe('auto: keep the sandbox and say its id; an id: run in that sandbox'),
    timeout_seconds: z.int().min(1).max(MOST_SECONDS).default(MOST_SECONDS),
    stream: z.boolean().default(false).describe('Server-sent events: output while it is written, then the result'),
    file_ids: z.array(z.string().min(1).max(128)).max(100).default([]).describe('Files for the working directory'),
    user: shortText.optional().describe('Whom the run is for; only with the master key'),
  })
  .superRefine(({ code, command }, context) => {
    if ((code === undefined) !== (command === undefined)) return
    const message = 'exactly one of code and command must be given'
    context.addIssue({ code: 'custom', path: [code === undefined ? 'code' : 'command'], message })
  })
type Wanted = z.output<typeof body>

const answer = z.strictObject({
  object: z.literal('code_execution'),
  stdout: z.string(),
  stderr: z.string(),
  return_code: z.int(),
  limit: sandboxLimit.optional().describe('Which limit of the sandbox ended it'),
  files: z.array(z.strictObject({ name: z.string(), file_id: z.string().optional() })),
  container: z.strictObject({ id: z.string(), expires_at: z.iso.datetime() }).optional(),
  execution_time_ms: z.int(),
})

const schema = {
  tags: ['tools'],
  summary: 'Run code in a sandbox',
  description:
    'Python, or a command line, without a model. With `stream` the answer is `text/event-stream`: `output` events (`{stream, text}`) as they are written, then one `result` with the JSON answer, or one `error`; a client that reads too slowly for all output has it in the result. Priced as a call of `otari:code_execution`; a program that fails costs nothing. Headers `Otari-Container-Id` and `Otari-Container-Expires-At` name a sandbox that is kept.',
  body,
  response: { 200: answer },
}

export interface CodeExecutionNeeds extends DirectNeeds {
  capabilities(): Promise<Capabilities>
  /** Undefined: no files are kept (FI-25). */
  files: Pick<Files, 'rows'> | undefined
}

/** `POST /code-execution`: one run of code, without a model. */
export const codeExecutionRoute =
  (needs: CodeExecutionNeeds, cut: AbortSignal): FastifyPluginCallbackZod =>
  (app, _options, done) => {
    const { settings, rateLimit } = needs
    const endOf = requestEnds(cut)
    app.post('/code-execution', { schema }, (request, reply) => {
      const end = endOf(reply, settings.requestTimeoutMs)
      return serve(request, request.body, reply, end).finally(end.done)
    })
    done()

    async function serve(
      { identity, id }: Pick<FastifyRequest, 'identity' | 'id'>,
      wanted: Wanted,
      reply: FastifyReply,
      { signal, deadline }: RequestEnd,
    ): Promise<void> {
      const acting = await actFor(identity, wanted.user, { dialect: 'chat', ...needs })
      const wish = await wishOf(wanted, acting)
      const call = {
        ...servedHere.code_execution,
        endpoint: '/api/v1/code-execution',
        tenancy: tenancyOf(acting, id),
        budgetExempt: acting.budgetExempt,
        signal,
        deadline,
        lastCheck: () => rateLimit.take(acting),
      }
      const run = async (listener?: RunListener) => {
        const outcome = await directCall(needs, call, (at) => runCode(needs, wish, listener, at))
        if (!outcome.ok) throw new Fault(outcome.failure, outcome.message, { cause: outcome.cause })
        return outcome.value
      }
      const begin = (container: HeldContainer | undefined) => nameContainer(reply, container)
      if (!wanted.stream) {
        const ran = await run()
        begin(ran.container)
        return void reply.send(bodyOf(ran))
      }
      const everyMs = settings.streamingKeepaliveIntervalMs
      const stream = openRunStream(reply, { everyMs, signal, onBegin: begin })
      try {
        stream.result(bodyOf(await run(stream)))
      } catch (thrown) {
        if (!stream.begun()) throw thrown
        const { failure } = Fault.from(thrown)
        if (failure !== 'cancelled') needs.log.warn({ request: id, err: thrown }, 'a stream broke off')
        stream.fail(thrown)
      }
    }

    /** What of it the request alone decides, in the order of R-65. */
    async function wishOf(wanted: Wanted, acting: Identity): Promise<CodeWish> {
      const { code, command, container, timeout_seconds } = wanted
      refuseLongCode('code', code)
      refuseLongCode('command', command)
      const { sandbox, away } = await needs.capabilities()
      const fault = away?.get(codeExecution.name)
      if (fault) throw fault()
      if (!sandbox) {
        throw new Fault(
          'invalid_request',
          'no sandbox is configured on this gateway. Set OTARI_SANDBOX_URL on the gateway.',
        )
      }
      const policy = (await needs.policies.of(acting.workspace)).code
      refuseCode(policy, settings, command === undefined ? 'code_execution' : 'bash_code_execution')
      const execSeconds = Math.min(timeout_seconds, policy.execTimeoutSeconds ?? MOST_SECONDS)
      return {
        code: code ?? command ?? '',
        kind: command === undefined ? 'python' : 'shell',
        container: keptContainer(readContainer(container)),
        image: policy.image ?? undefined,
        execSeconds,
        leaseSeconds: sessionSeconds(1, execSeconds),
        toolFiles: toolFiles(needs.files?.rows, await filesOf(wanted.file_ids, acting), needs.log),
      }
    }

    /** Also the master key names the files of the user that it runs for alone. */
    function filesOf(ids: readonly string[], { organization, workspace, user }: Identity): Promise<FileReference[]> {
      return findFiles(needs.files, { organization, workspace, user }, ids)
    }
  }

/** Now, while it is a status and no sandbox was leased for it. */
function refuseLongCode(member: 'code' | 'command', text = ''): void {
  if (Buffer.byteLength(JSON.stringify(text)) <= MOST_CODE_BYTES) return
  throw new Fault('too_large', `${member} takes more than ${MOST_CODE_BYTES / 1024} KiB`)
}

function nameContainer(reply: FastifyReply, container: HeldContainer | undefined): void {
  if (container === undefined) return
  reply.headers({ 'Otari-Container-Id': container.id, 'Otari-Container-Expires-At': container.expiresAt })
}

function bodyOf({ run, container, executionMs }: CodeRan): z.input<typeof answer> {
  return {
    object: 'code_execution',
    stdout: run.stdout,
    stderr: run.stderr,
    return_code: run.returnCode,
    ...(run.limit !== undefined && { limit: run.limit }),
    files: run.files.map(({ name, file }) => ({ name, ...(file && { file_id: file.id }) })),
    ...(container && { container: { id: container.id, expires_at: container.expiresAt } }),
    execution_time_ms: executionMs,
  }
}
