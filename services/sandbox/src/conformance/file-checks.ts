import { Breach, expectShape, expectStatus, type Reply, shapes, Unserved } from './client.ts'
import { type Check, expectRan, MARKER, UNKNOWN } from './expect.ts'
import { withSession } from './session.ts'

/** A route that is not there answers for itself; its session was there a moment ago. */
function expectServed(reply: Reply): void {
  if ([404, 405, 501].includes(reply.status)) throw new Unserved('file operations are not served')
}

/** CP-18 to CP-20: the operations a backend may leave out. */
export const fileChecks: Check[] = [
  {
    name: 'a file that is put is listed, read back and seen by code',
    run: (client) =>
      withSession(client, async ({ put, file, python }) => {
        const reply = await put('given.txt', MARKER)
        expectServed(reply)
        expectShape(reply, 201, shapes.written)
        const { files } = expectShape(await file('GET', 'files/list?path=.'), 200, shapes.listing)
        const listed = files.find(({ path }) => path.endsWith('given.txt'))
        if (listed?.size_bytes !== MARKER.length) throw new Breach('it is not listed with its size')
        const got = await file('GET', 'files?path=given.txt')
        expectStatus(got, 200)
        if (got.bytes.toString() !== MARKER) throw new Breach('what is read is not what was put')
        expectRan(await python('print(open("given.txt").read())'), MARKER)
      }),
  },
  {
    name: 'a path that leaves the workspace is refused',
    run: (client) =>
      withSession(client, async ({ put, file }) => {
        expectServed(await put('inside.txt', 'x'))
        for (const path of ['../../etc/passwd', '/etc/passwd', 'a/../../x'])
          expectStatus(await file('GET', `files?path=${encodeURIComponent(path)}`), 403, 404)
        expectStatus(await file('GET', `files/list?path=${encodeURIComponent('../..')}`), 403, 404)
        expectStatus(await put('../outside.txt', 'x'), 403)
      }),
  },
  {
    name: 'a folder is not a file, and what is not there is a 404',
    run: (client) =>
      withSession(client, async ({ put, file }) => {
        expectServed(await put('folder/inside.txt', 'x'))
        expectStatus(await file('GET', 'files?path=folder'), 400)
        expectStatus(await file('GET', 'files?path=missing.txt'), 404)
        expectStatus(await file('GET', 'files/list?path=missing'), 404)
      }),
  },
  {
    name: 'an upload without its file is refused, files of an unknown session are a 404',
    run: (client) =>
      withSession(client, async ({ put, file }) => {
        expectServed(await put('inside.txt', 'x'))
        const form = new FormData()
        form.set('path', 'only-a-path.txt')
        expectStatus(await file('POST', 'files', form), 400, 422)
        expectStatus(await client.send('GET', `/sessions/${UNKNOWN}/files?path=a`), 404)
        expectStatus(await client.send('GET', `/sessions/${UNKNOWN}/files/list`), 404)
      }),
  },
]
