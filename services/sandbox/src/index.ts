export type { RefusedLevel } from './drivers/choose.ts'
export { type PythonProbe, probePython } from './python.ts'
export { type RunningSandbox, type SandboxNeeds, startSandbox } from './server.ts'
export {
  defaultSandboxSettings,
  type IsolationLevel,
  isolationLevels,
  type SandboxSettings,
  type SessionLimits,
} from './settings.ts'
