import { Breach, expectShape, expectStatus, shapes, Unserved } from './client.ts'
import { type Check, expectFailed, expectRan, MARKER, UNKNOWN } from './expect.ts'
import { leaseSession, withSession } from './session.ts'

/** CP-03 to CP-06, CP-12, CP-15, CP-21: leases and releases. */
export const sessionChecks: Check[] = [
  {
    name: 'a lease answers 201 with a handle, and hints only shorten it',
    run: (client) =>
      withSession(
        client,
        async ({ idleSeconds }) => {
          if (idleSeconds !== undefined && idleSeconds > 120)
            throw new Breach(`120 s asked for, ${idleSeconds} reported`)
        },
        { idle_timeout_seconds: 120 },
      ),
  },
  {
    name: 'every lease is another session',
    run: (client) =>
      withSession(client, (one) =>
        withSession(client, async (other) => {
          if (one.id === other.id) throw new Breach('two leases, one id')
        }),
      ),
  },
  {
    name: 'members the backend does not know are passed over',
    run: (client) =>
      withSession(
        client,
        async ({ exec }) => {
          const request = { tool: 'code_execution', input: { code: 'print(1)', not_known: 1 }, not_known: {} }
          expectShape(await exec(request), 200, shapes.executed)
        },
        { not_known: [1], image: 'not:known' },
      ),
  },
  {
    name: 'a release answers 204, twice is no failure, and afterwards the session is unknown',
    async run(client) {
      const session = await leaseSession(client)
      expectStatus(await session.release(), 204)
      expectStatus(await session.release(), 204, 404)
      expectStatus(await session.exec({ tool: 'code_execution', input: { code: 'print(1)' } }), 404)
    },
  },
  {
    name: 'an unknown session is a 404',
    async run(client) {
      const json = { tool: 'code_execution', input: { code: 'print(1)' } }
      expectStatus(await client.send('POST', `/sessions/${UNKNOWN}/exec`, { json }), 404)
      expectStatus(await client.send('DELETE', `/sessions/${UNKNOWN}`), 204, 404)
    },
  },
  {
    name: 'variables and files of one session are not there in another',
    run: (client) =>
      withSession(client, async (one) => {
        expectRan(
          await one.python(`secret = "${MARKER}"\nopen("secret.txt", "w").write("${MARKER}")\nprint("kept")`),
          'kept',
        )
        await withSession(client, async (other) => {
          for (const code of ['print(secret)', 'print(open("secret.txt").read())']) {
            const ran = await other.python(code)
            expectFailed(ran)
            if (ran.stdout.includes(MARKER)) throw new Breach('another session read it')
          }
        })
        expectRan(await one.python('print(secret)'), MARKER)
      }),
  },
  {
    name: 'a session that reports an idle timeout is reclaimed after it',
    run: (client) =>
      withSession(
        client,
        async ({ idleSeconds, exec }) => {
          if (idleSeconds === undefined || idleSeconds > 5)
            throw new Unserved('no idle timeout short enough to wait for is reported')
          // half as long again, since reclaiming is the backend's own clock
          await new Promise((done) => setTimeout(done, idleSeconds * 1_500 + 1_000))
          expectStatus(await exec({ tool: 'code_execution', input: { code: 'print(1)' } }), 404)
        },
        { idle_timeout_seconds: 1 },
      ),
  },
]
