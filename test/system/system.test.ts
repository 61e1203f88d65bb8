import { describe, expect, test } from 'vitest'
import { badInput } from './bad-input.ts'
import { kinds } from './deployment.ts'
import { directCode } from './direct-code.ts'
import { keptSandbox } from './kept-sandbox.ts'
import { leavingClients } from './leaving.ts'
import { theMainJob } from './main-job.ts'
import { oneTrace } from './one-trace.ts'
import { canaries } from './outside.ts'
import { storedFiles } from './stored-files.ts'
import { useSystem } from './system.ts'
import { changedToolSettings } from './tool-settings.ts'
import { unpricedWork } from './unpriced.ts'

describe.each(kinds)('a deployment, %s', (kind) => {
  const use = useSystem(kind)
  theMainJob(use)
  keptSandbox(use)
  directCode(use)
  storedFiles(use)
  oneTrace(use)
  badInput(use)
  unpricedWork(use)
  changedToolSettings(use)
  leavingClients(use)

  test('BR-122 no log of any process holds a key, a query, a program or a page, whatever was sent', () => {
    const { deployment, key } = use()
    const lines = deployment.allLogs().split('\n')
    expect(lines.length).toBeGreaterThan(100)
    const secrets = [key, deployment.masterKey, ...Object.values(canaries), 'gw-nobody-has-this-key']
    for (const secret of [...secrets, 'news of', 'print(sum', 'secret word', 'in-query', 'job whole'])
      expect(lines.filter((line) => line.includes(secret))).toEqual([])
  })

  test('no process threw past its handlers', () => {
    const lines = use().deployment.allLogs().split('\n')
    expect(lines.filter((line) => /uncaught|unhandled|MaxListenersExceeded|DeprecationWarning/i.test(line))).toEqual([])
  })
})
