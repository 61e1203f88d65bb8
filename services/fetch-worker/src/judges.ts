import { type GuardOptions, type JudgeHop, openGuard, type Resolve } from '@tollgate/http'

/** The guard for one call. */
export type Judges = (call: { allowPrivateHosts: boolean; rules: { allowedHosts: string[] } }) => JudgeHop

/** Exceptions are the deployment's and the call's together: private hosts at large (S-77), or single names (WM-86). */
export function openJudges(resolve: Resolve, guard: GuardOptions = {}): Judges {
  const judgeFor = (allowPrivateHosts: boolean, allowedHosts: string[]): JudgeHop =>
    openGuard(resolve, {
      ...guard,
      ...(allowPrivateHosts ? { reach: { loopback: true, private: true } } : {}),
      allowedHosts: [...(guard.allowedHosts ?? []), ...allowedHosts],
    })
  const [usual, withPrivate] = [judgeFor(false, []), judgeFor(true, [])]
  return ({ allowPrivateHosts, rules: { allowedHosts } }) => {
    if (allowedHosts.length > 0) return judgeFor(allowPrivateHosts, allowedHosts)
    return allowPrivateHosts ? withPrivate : usual
  }
}
