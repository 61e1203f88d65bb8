import {
  bytes,
  type FakeFile,
  type FilesCall,
  type FilesDoor,
  fakeFiles,
  filesDoor,
  formIn,
  jsonAnswer,
  seconds,
} from './model-files.ts'
import type { RawAnswer } from './model-script.ts'

const PATH = /^\/v1\/files(?:\/([\w-]+)(\/content)?)?$/
const DAYS_90 = 90 * 24 * 3_600

/** Anthropic's Files API. What clients put there nobody can download again; what code made, anybody can. */
export function anthropicFilesDoor(apiKey: string | undefined): FilesDoor {
  const { files, add, delete: remove } = fakeFiles()

  async function serve(call: FilesCall): Promise<RawAnswer> {
    const { method, path, headers } = call
    const [, id, content] = PATH.exec(path) ?? []
    // the vendor's own client sends a bearer token
    const key = headers['x-api-key'] ?? headers.authorization?.replace(/^Bearer /, '')
    if (apiKey !== undefined && key !== apiKey) return refused(401, 'authentication_error', 'invalid x-api-key')
    const version = headers['anthropic-version']
    if (version === undefined) return refused(400, 'invalid_request_error', 'anthropic-version: header is required')
    const betas = String(headers['anthropic-beta']).split(',')
    // later versions have it without the beta
    if (version === '2023-06-01' && !betas.includes('files-api-2025-04-14'))
      return refused(400, 'invalid_request_error', 'anthropic-beta: files-api-2025-04-14 is required')
    if (id === undefined)
      return method === 'POST' ? upload(call) : refused(405, 'invalid_request_error', 'Method Not Allowed')
    const file = files.find(id)
    if (!file) return refused(404, 'not_found_error', `File not found: ${id}`)
    if (method === 'DELETE' && !content) {
      remove(id)
      return jsonAnswer(200, { id, type: 'file_deleted' })
    }
    if (method !== 'GET') return refused(405, 'invalid_request_error', 'Method Not Allowed')
    if (!content) return jsonAnswer(200, metadata(file))
    return !file.byClient ? bytes(file) : refused(400, 'invalid_request_error', `File '${id}' is not downloadable`)
  }

  async function upload(call: FilesCall): Promise<RawAnswer> {
    const form = await formIn(call)
    if (!form?.file) return refused(400, 'invalid_request_error', 'file: Field required')
    const odd = Object.keys(form.fields).find((name) => name !== 'expires_in_seconds')
    if (odd !== undefined) return refused(400, 'invalid_request_error', `${odd}: Extra inputs are not permitted`)
    if (!seconds(form.fields.expires_in_seconds, 3_600, DAYS_90))
      return refused(400, 'invalid_request_error', 'expires_in_seconds: must be between 3600 and 7776000')
    // biome-ignore lint/suspicious/noControlCharactersInRegex: those are what the vendor forbids
    if (!/^[^<>:"|?*\\/\u0000-\u001f]{1,255}$/.test(form.file.name))
      return refused(400, 'invalid_request_error', 'file: invalid filename')
    const id = `file_01Fake${String(files.put.length + 1).padStart(4, '0')}`
    return jsonAnswer(200, metadata(add(form, id)))
  }

  const metadata = (file: FakeFile) => ({
    id: file.id,
    type: 'file',
    filename: file.name,
    mime_type: file.mediaType,
    size_bytes: file.content.length,
    created_at: '2026-11-30T12:00:00.000000Z',
    downloadable: !file.byClient,
  })

  return filesDoor(PATH, files, serve)
}

const refused = (status: number, type: string, message: string): RawAnswer =>
  jsonAnswer(status, { type: 'error', error: { type, message }, request_id: 'req_fake' })
