import { expect, test } from 'vitest'
import { natsAccess } from '../../services/nats-access.ts'

test.each([
  ['nats://a:4222', { servers: ['nats://a:4222'] }],
  ['a:4222', { servers: ['nats://a:4222'] }],
  ['tls://u:p%40ss@a:4222', { servers: ['tls://a:4222'], user: 'u', password: 'p@ss' }],
  ['nats://secret@a:4222', { servers: ['nats://a:4222'], token: 'secret' }],
  ['nats://u:p@a:4222, nats://b:4222', { servers: ['nats://a:4222', 'nats://b:4222'], user: 'u', password: 'p' }],
  ['nats://[::1]:4222', { servers: ['nats://[::1]:4222'] }],
])('%s', (text, access) => {
  expect(natsAccess(text)).toEqual(access)
})

test('what is no server is refused without being quoted', () => {
  expect(() => natsAccess('nats://u:canary@:x')).toThrow(/^nats_url is not/)
})
