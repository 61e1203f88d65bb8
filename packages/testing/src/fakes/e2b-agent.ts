import { spawn } from 'node:child_process'
import { createWriteStream } from 'node:fs'
import { mkdir, readdir, readFile, stat } from 'node:fs/promises'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { basename, dirname, join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { z } from 'zod'

/** A request that the vendor would refuse, in its words. */
export class Refused extends Error {
  readonly status: number
  readonly body: unknown
  constructor(status: number, body: unknown) {
    super(`refused with ${status}`)
    this.status = status
    this.body = body
  }
}

export const connectError = (status: number, code: string): Refused => new Refused(status, { code, message: code })

export interface AgentOptions {
  /** The sandbox's root on this machine. */
  root: string
  /** Bytes of a command's output that one message carries. */
  outputBytes: number
}

const absolute = z.string().regex(/^\//)
const listDir = z.strictObject({ path: absolute, depth: z.int().min(1).default(1) })
const makeDir = z.strictObject({ path: absolute })
const startProcess = z.object({
  process: z.object({
    cmd: z.string(),
    args: z.array(z.string()),
    cwd: absolute.optional(),
    envs: z.record(z.string(), z.string()).optional(),
  }),
  stdin: z.boolean().optional(),
})

/** `/files`: one file in or out, its bytes as they are or as a form. */
export async function serveFiles(request: IncomingMessage, response: ServerResponse, url: URL, { root }: AgentOptions) {
  const path = absolute.safeParse(url.searchParams.get('path'))
  if (!path.success) throw new Refused(400, { code: 400, message: 'path must be absolute' })
  const at = join(root, path.data)
  if (request.method === 'GET') {
    const found = await stat(at).catch(() => undefined)
    if (!found) throw new Refused(404, { code: 404, message: 'no such file' })
    if (found.isDirectory()) throw new Refused(400, { code: 400, message: 'is a directory' })
    return response.writeHead(200, { 'content-type': 'application/octet-stream' }).end(await readFile(at))
  }
  if (request.headers['content-type'] !== 'application/octet-stream')
    throw new Refused(400, { code: 400, message: 'must be application/octet-stream' })
  await mkdir(dirname(at), { recursive: true })
  await pipeline(request, createWriteStream(at))
  return json(response, 200, [{ name: basename(at), type: 'file', path: path.data }])
}

export async function serveFilesystem(method: string, body: Buffer, response: ServerResponse, { root }: AgentOptions) {
  if (method === 'MakeDir') {
    const { path } = read(makeDir, body)
    const made = await mkdir(join(root, path), { recursive: true })
    if (made === undefined) throw connectError(409, 'already_exists')
    return json(response, 200, { entry: await entry(root, path) })
  }
  if (method !== 'ListDir') throw connectError(501, 'unimplemented')
  const { path, depth } = read(listDir, body)
  const found = await stat(join(root, path)).catch(() => undefined)
  if (!found) throw connectError(404, 'not_found')
  if (!found.isDirectory()) throw connectError(400, 'invalid_argument')
  return json(response, 200, { entries: await below(root, path, depth) })
}

async function below(root: string, path: string, depth: number): Promise<object[]> {
  const entries: object[] = []
  for (const item of await readdir(join(root, path), { withFileTypes: true })) {
    const at = join(path, item.name)
    entries.push(await entry(root, at))
    if (item.isDirectory() && depth > 1) entries.push(...(await below(root, at, depth - 1)))
  }
  return entries
}

async function entry(root: string, path: string): Promise<object> {
  const found = await stat(join(root, path))
  return {
    name: basename(path),
    type: found.isDirectory() ? 'FILE_TYPE_DIRECTORY' : 'FILE_TYPE_FILE',
    path,
    size: String(found.size),
    mode: found.mode & 0o777,
    permissions: '-rw-r--r--',
    owner: 'user',
    group: 'user',
    modifiedTime: found.mtime.toISOString(),
  }
}

/** `process.Process/Start`: a stream of enveloped messages, output in base64, ended by an envelope with flag 2. */
export async function serveStart(body: Buffer, response: ServerResponse, { root, outputBytes }: AgentOptions) {
  const length = body.length < 5 ? -1 : body.readUInt32BE(1)
  if (body[0] !== 0 || length !== body.length - 5) throw connectError(400, 'invalid_argument')
  const { process: wanted } = read(startProcess, body.subarray(5))
  const cwd = join(root, wanted.cwd ?? '/home/user')
  if (!(await stat(cwd).catch(() => undefined))) throw connectError(400, 'invalid_argument')
  // the end of its client is not the command's
  const child = spawn(wanted.cmd, wanted.args, {
    cwd,
    env: { PATH: process.env.PATH ?? '', HOME: join(root, 'home/user'), ...wanted.envs },
    stdio: ['ignore', 'pipe', 'pipe'],
    detached: true,
  })
  response.writeHead(200, { 'content-type': 'application/connect+json' })
  const send = (message: object, flags = 0) => {
    const bytes = Buffer.from(JSON.stringify(message))
    const head = Buffer.alloc(5)
    head.writeUInt8(flags)
    head.writeUInt32BE(bytes.length, 1)
    response.write(Buffer.concat([head, bytes]))
  }
  send({ event: { start: { pid: child.pid } } })
  for (const stream of ['stdout', 'stderr'] as const)
    child[stream].on('data', (chunk: Buffer) => {
      for (let at = 0; at < chunk.length; at += outputBytes)
        send({ event: { data: { [stream]: chunk.subarray(at, at + outputBytes).toString('base64') } } })
    })
  child.once('close', (code) => {
    send({ event: { end: { exitCode: code ?? -1, exited: code !== null, status: `exit status ${code}` } } })
    send({}, 2)
    response.end()
  })
}

function read<S extends z.ZodType>(shape: S, body: Buffer): z.output<S> {
  const parsed = shape.safeParse(JSON.parse(body.toString('utf8')))
  if (!parsed.success) throw connectError(400, 'invalid_argument')
  return parsed.data
}

export const json = (response: ServerResponse, status: number, body: unknown, headers: Record<string, string> = {}) =>
  response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(JSON.stringify(body))
