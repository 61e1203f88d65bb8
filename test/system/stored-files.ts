import { createHash, randomBytes } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { ask, openaiClient } from './client.ts'
import type { System } from './system.ts'

/** Reads the file it was given, and leaves one twice as long. */
const program = (name: string) => `
import hashlib
data = open(${JSON.stringify(name)}, "rb").read()
open("twice.bin", "wb").write(data + data)
print(len(data), hashlib.sha256(data).hexdigest())
`

/** Files from a client through every process to its code, and back. */
export function storedFiles(use: () => System): void {
  describe('a file', () => {
    test('FI-01 FI-12 FI-21 goes from a client to code in the sandbox, and what the code makes of it comes back', async () => {
      const { deployment, key } = use()
      const client = openaiClient(deployment, key)
      const content = randomBytes(1024 * 1024 + 7)
      const { id, bytes } = await client.files.create({ file: new File([content], 'noise.bin'), purpose: 'user_data' })
      expect(bytes).toBe(content.length)
      const ran = await ask(deployment, 'POST', '/api/v1/code-execution', {
        key,
        body: { code: program('noise.bin'), file_ids: [id] },
      })
      expect(ran.json.stdout).toBe(`${content.length} ${createHash('sha256').update(content).digest('hex')}\n`)
      expect(ran.json.files).toEqual([{ name: 'twice.bin', file_id: expect.stringMatching(/^file-/) }])
      const made = ran.json.files[0].file_id
      expect(await client.files.retrieve(made)).toMatchObject({
        filename: 'twice.bin',
        bytes: 2 * content.length,
        purpose: 'code_execution_output',
      })
      const download = Buffer.from(await (await client.files.content(made)).arrayBuffer())
      expect(download.equals(Buffer.concat([content, content]))).toBe(true)
      for (const stored of [id, made]) await client.files.delete(stored)
      await expect(client.files.content(made)).rejects.toMatchObject({ status: 404 })
    })

    test('FI-18 C-09 goes on top of what a kept sandbox holds, in place of a file of its name', async () => {
      const { deployment, key } = use()
      const { files } = openaiClient(deployment, key)
      const upload = async (text: string) =>
        (await files.create({ file: new File([text], 'data.csv'), purpose: 'user_data' })).id
      const run = async (code: string, container: string, id: string) =>
        (await ask(deployment, 'POST', '/api/v1/code-execution', { key, body: { code, container, file_ids: [id] } }))
          .json
      const first = await run(
        'print(open("data.csv").read())\nopen("mine.txt", "w").write("mine")',
        'auto',
        await upload('old'),
      )
      expect(first.stdout).toMatch(/^old\n/)
      const read = 'print(open("data.csv").read(), open("mine.txt").read())'
      const next = await run(read, first.container.id, await upload('a new one'))
      expect(next).toMatchObject({ stdout: 'a new one mine\n', files: [] })
    })
  })
}
