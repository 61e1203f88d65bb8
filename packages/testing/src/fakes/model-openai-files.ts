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

const FILES = /^\/v1\/files(?:\/([\w-]+))?$/
const CONTAINER = /^\/v1\/containers\/([\w-]+)\/files(?:\/([\w-]+)(\/content)?)?$/
const PURPOSES = new Set(['assistants', 'batch', 'fine-tune', 'vision', 'user_data', 'evals'])
const FIELDS = new Set(['purpose', 'expires_after[anchor]', 'expires_after[seconds]'])
const DAYS_30 = 30 * 24 * 3_600

/** OpenAI's files, and those of its containers. */
export function openAiFilesDoor(apiKey: string | undefined): FilesDoor {
  const { files, add, delete: remove } = fakeFiles()

  async function serve(call: FilesCall): Promise<RawAnswer> {
    if (apiKey !== undefined && call.headers.authorization !== `Bearer ${apiKey}`)
      return refused(401, 'Incorrect API key provided.')
    const [, id] = FILES.exec(call.path) ?? []
    const [, container, inside, content] = CONTAINER.exec(call.path) ?? []
    if (container !== undefined) return inContainer(call, container, inside, content !== undefined)
    if (id === undefined) return call.method === 'POST' ? upload(call) : refused(405, 'Not allowed')
    const file = files.find(id)
    if (!file || file.container) return refused(404, `No such File object: ${id}`)
    if (call.method !== 'DELETE') return refused(405, 'Not allowed to download files of purpose: user_data')
    remove(id)
    return jsonAnswer(200, { id, object: 'file', deleted: true })
  }

  async function upload(call: FilesCall): Promise<RawAnswer> {
    const form = await formIn(call)
    if (!form?.file) return refused(400, "'file' is a required property")
    const { fields } = form
    const odd = Object.keys(fields).find((name) => !FIELDS.has(name))
    if (odd !== undefined) return refused(400, `Additional properties are not allowed ('${odd}' was unexpected)`)
    if (!PURPOSES.has(fields.purpose ?? '')) return refused(400, `'${fields.purpose}' is not one of the purposes`)
    const expiry = [fields['expires_after[anchor]'], fields['expires_after[seconds]']] as const
    if ((expiry[0] === undefined) !== (expiry[1] === undefined) || !['created_at', undefined].includes(expiry[0]))
      return refused(400, "Invalid 'expires_after'.")
    if (!seconds(expiry[1], 3_600, DAYS_30)) return refused(400, "Invalid 'expires_after[seconds]'.")
    if (form.file.content.length === 0) return refused(400, 'File is empty.')
    const file = add(form, `file-Fake${String(files.put.length + 1).padStart(4, '0')}`)
    const { id, name: filename, content } = file
    const object = { id, object: 'file', bytes: content.length, created_at: 1_792_000_000, filename }
    return jsonAnswer(200, { ...object, purpose: fields.purpose, status: 'processed' })
  }

  async function inContainer(call: FilesCall, container: string, id: string | undefined, content: boolean) {
    if (!files.containers.has(container)) return refused(404, `Container with id '${container}' not found.`)
    if (id === undefined) {
      if (call.method === 'GET') return jsonAnswer(200, listing(container))
      const form = call.method === 'POST' ? await formIn(call) : undefined
      if (!form?.file || Object.keys(form.fields).length > 0)
        return refused(400, "Either 'file' or 'file_id' is required.")
      const added = add(form, `cfile_put${String(files.put.length + 1).padStart(4, '0')}`, container)
      return jsonAnswer(200, shown(added))
    }
    const file = files.find(id)
    if (file?.container !== container) return refused(404, `Container file with id '${id}' not found.`)
    if (call.method === 'GET') return content ? bytes(file) : jsonAnswer(200, shown(file))
    if (call.method !== 'DELETE' || content) return refused(405, 'Not allowed')
    remove(id)
    return { status: 200, headers: {}, body: '' }
  }

  const shown = (file: FakeFile) => ({
    id: file.id,
    object: 'container.file',
    created_at: 1_792_000_000,
    bytes: file.content.length,
    container_id: file.container,
    path: `/mnt/data/${file.name}`,
    source: file.byClient ? 'user' : 'assistant',
  })
  const listing = (container: string) => {
    const data = files
      .all()
      .filter((file) => file.container === container)
      .map(shown)
    return { object: 'list', data, first_id: data[0]?.id, last_id: data.at(-1)?.id, has_more: false }
  }

  return filesDoor(new RegExp(`${FILES.source}|${CONTAINER.source}`), files, serve)
}

const refused = (status: number, message: string): RawAnswer =>
  jsonAnswer(status, { error: { message, type: 'invalid_request_error', param: null, code: null } })
