import { zygoteConfig } from '../src/drivers/environment.ts'
import { startZygote } from '../src/drivers/zygote.ts'
import { defaultSandboxSettings, probePython } from '../src/index.ts'
import { log } from './harness.ts'

/** Whether this machine lets sessions have namespaces: most tests of what a session cannot do are of that level. */
export async function hasNamespaces(): Promise<boolean> {
  const python = await probePython({})
  if (!python.ok) return false
  const config = zygoteConfig('ns', python.path, { ...defaultSandboxSettings, preload: [] })
  return startZygote(python.path, config, log).then(
    async (zygote) => {
      await zygote.close()
      return true
    },
    () => false,
  )
}
