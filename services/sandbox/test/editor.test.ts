import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Backend, openBackend, printed, type SessionClient } from './harness.ts'

let backend: Backend
let session: SessionClient
beforeAll(async () => {
  backend = await openBackend()
  session = await backend.open()
})
afterAll(() => backend.close())

const create = (path: string, file_text: string) => session.edit({ command: 'create', path, file_text })
const view = (path: string, view_range?: number[]) => session.edit({ command: 'view', path, view_range })
const replace = (path: string, old_str: string, new_str: string) =>
  session.edit({ command: 'str_replace', path, old_str, new_str })
const insert = (path: string, insert_line: number, new_str: string) =>
  session.edit({ command: 'insert', path, insert_line, new_str })
const undo = (path: string) => session.edit({ command: 'undo_edit', path })

test('CP-08 a file is created with its folders, viewed, edited and reverted step by step', async () => {
  expect(await create('src/a.py', 'one\ntwo\nthree\n')).toMatchObject({
    return_code: 0,
    stdout: 'File created: src/a.py\n',
  })
  expect(printed(await view('src/a.py'))).toBe('one\ntwo\nthree\n')
  expect(printed(await view('src/a.py', [2, 3]))).toBe('two\nthree')
  expect(printed(await view('src/a.py', [2, -1]))).toBe('two\nthree\n')
  printed(await replace('src/a.py', 'two', '$& 2'))
  printed(await insert('./src/a.py', 0, 'zero'))
  printed(await insert('src/a.py', 4, 'four\n'))
  expect(printed(await session.shell('cat src/a.py'))).toBe('zero\none\n$& 2\nthree\nfour\n')
  printed(await undo('src/a.py'))
  printed(await undo('src//a.py'))
  expect(printed(await view('src/a.py'))).toBe('one\n$& 2\nthree\n')
  printed(await undo('src/a.py'))
  expect(printed(await view('src/a.py'))).toBe('one\ntwo\nthree\n')
  expect(await undo('src/a.py')).toMatchObject({ return_code: 1, stderr: 'there is no edit of src/a.py to undo\n' })
})

test('a line is added after a last one without an end', async () => {
  await create('bare.txt', 'a')
  await insert('bare.txt', 1, 'b')
  expect(printed(await view('bare.txt'))).toBe('a\nb\n')
})

test('a folder is viewed as names two levels deep', async () => {
  await session.shell('mkdir -p tree/x/y; touch tree/b tree/x/a tree/x/y/z tree/.hidden')
  expect(printed(await view('tree'))).toBe('b\nx/\nx/a\nx/y/\n')
})

test.each([
  ['create on what exists', { command: 'create', path: 'there', file_text: 'x' }, /exists/],
  ['create on a folder', { command: 'create', path: 'folder', file_text: 'x' }, /exists/],
  ['create outside', { command: 'create', path: '../x', file_text: 'x' }, /outside/],
  ['view of nothing', { command: 'view', path: 'missing' }, /no such file/],
  ['view outside', { command: 'view', path: '/etc/passwd' }, /outside/],
  ['view through a link', { command: 'view', path: 'link' }, /outside/],
  ['view of a binary', { command: 'view', path: 'binary' }, /not a text file/],
  ['view of a device', { command: 'view', path: 'zero' }, /outside/],
  ['view of a pipe', { command: 'view', path: 'pipe' }, /not a file/],
  ['view of no range', { command: 'view', path: 'there', view_range: [3, 1] }, /not a range/],
  ['replacing what is not there', { command: 'str_replace', path: 'there', old_str: 'q', new_str: 'x' }, /not occur/],
  ['replacing what is there twice', { command: 'str_replace', path: 'there', old_str: 'a', new_str: 'x' }, /2 times/],
  ['replacing in a binary', { command: 'str_replace', path: 'binary', old_str: 'a', new_str: 'x' }, /not a text file/],
  ['inserting after the end', { command: 'insert', path: 'there', insert_line: 9, new_str: 'x' }, /between 0 and 2/],
  [
    'inserting before the start',
    { command: 'insert', path: 'there', insert_line: -1, new_str: 'x' },
    /between 0 and 2/,
  ],
  ['undoing what was not done', { command: 'undo_edit', path: 'there' }, /no edit/],
  ['a large file', { command: 'insert', path: 'large', insert_line: 0, new_str: 'x' }, /too large/],
])('G11 G12 %s is exit code 1 with a reason', async (_what, input, why) => {
  await session.shell(
    'printf "a\\na\\n" > there; mkdir -p folder; ln -sf /etc/passwd link; printf "a\\0\\377" > binary; ln -sf /dev/zero zero; test -e pipe || mkfifo pipe; truncate -s 200M large',
  )
  const { return_code, stdout, stderr } = await session.edit(input)
  expect([return_code, stdout]).toEqual([1, ''])
  expect(stderr).toMatch(why)
})

test('G11 a large sparse file is viewed by its beginning', async () => {
  await session.shell('truncate -s 200M big.txt; printf begin | dd of=big.txt conv=notrunc status=none')
  const { return_code, stderr } = await view('big.txt')
  expect([return_code, stderr]).toEqual([1, 'big.txt is not a text file\n'])
  await session.shell('yes line | head -c 2000000 > long.txt')
  expect(printed(await view('long.txt'))).toMatch(/line\n.*\[view cut: 1475712 more bytes\]$/s)
})

test('G12 nothing is undone that something else changed since', async () => {
  await create('mine.txt', 'one')
  await replace('mine.txt', 'one', 'two')
  await session.shell('echo changed > mine.txt')
  expect(await undo('mine.txt')).toMatchObject({
    return_code: 1,
    stderr: 'mine.txt was changed by something else since it was edited\n',
  })
  expect(printed(await session.shell('cat mine.txt'))).toBe('changed\n')
})

test('G12 an edit never goes through a link that was put in its way', async () => {
  await create('swap.txt', 'one')
  await session.shell('mv swap.txt real.txt; ln -s real.txt swap.txt')
  printed(await replace('swap.txt', 'one', 'two'))
  expect(printed(await session.shell('cat real.txt swap.txt; test -L swap.txt || echo plain'))).toBe('onetwoplain\n')
})
