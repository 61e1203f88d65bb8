import { describe, expect, test } from 'vitest'
import { fileOf, lease, limits, open, refused, text } from './protocol-rig.ts'

describe('files', () => {
  test('CP-20 CP-18 CP-19 what is put is listed and read back', async () => {
    const { provider } = await open()
    const session = await lease(provider)
    const body = 'a,b\r\n--boundary\r\n1,"é"\r\n'
    expect(await provider.put(session, fileOf('in/dä"ta\r\n.csv', body), limits())).toMatchObject({ status: 'ok' })
    expect(await provider.put(session, fileOf('in/data.csv', body), limits())).toEqual({
      status: 'ok',
      path: 'in/data.csv',
    })
    const listed = await provider.list(session, 'in', limits())
    expect(listed.status === 'ok' && listed.files).toContainEqual({
      path: 'in/data.csv',
      bytes: Buffer.byteLength(body),
      modifiedAt: expect.any(Number),
    })
    const got = await provider.get(session, 'in/data.csv', limits())
    if (got.status !== 'ok') throw new Error(got.reason)
    expect(got.mediaType).toBe('application/octet-stream')
    expect(await text(got.content)).toBe(body)
  })

  test('CP-18 a backend without file operations says so with a 404', async () => {
    const { provider } = await open({ files: false })
    const session = await lease(provider)
    expect(await provider.list(session, '.', limits())).toEqual({ status: 'failed', reason: 'lost' })
  })

  test('CP-18 CP-19 CP-20 paths outside, folders, missing files and files too large are refused', async () => {
    const { provider } = await open({ maxFileBytes: 10 })
    const session = await lease(provider)
    await provider.put(session, fileOf('d/a', '1'), limits())
    expect(await provider.list(session, '../etc', limits())).toEqual(refused)
    expect(await provider.list(session, 'nowhere', limits())).toEqual({ status: 'failed', reason: 'lost' })
    expect(await provider.get(session, 'd', limits())).toEqual(refused)
    expect(await provider.get(session, '../../etc/passwd', limits())).toEqual(refused)
    expect(await provider.get(session, 'nothing', limits())).toEqual({ status: 'failed', reason: 'lost' })
    expect(await provider.put(session, fileOf('big', '12345678901'), limits())).toEqual(refused)
    expect(await provider.put(session, fileOf('../out', '1'), limits())).toEqual(refused)
  })

  test('CP-18 a listing of another shape is refused, unknown members are not', async () => {
    const replies: unknown[] = [
      { files: [{ path: 'a' }] },
      { files: [{ path: 'a', size_bytes: 1, mime_type: null, x: 1 }], y: 2 },
    ]
    const { provider } = await open({ respond: () => ({ status: 200, body: replies.shift() }) })
    expect(await provider.list('x', '.', limits())).toEqual(refused)
    expect(await provider.list('x', '.', limits())).toEqual({ status: 'ok', files: [{ path: 'a', bytes: 1 }] })
  })
})
