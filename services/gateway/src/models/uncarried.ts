import { Fault } from '@tollgate/contracts'
import { UpstreamFault } from './upstream-fault.ts'

/** A request that one provider's wire has no form for, or whose files it does not take. Another candidate may have one, so a chain passes this one over. */
export class Uncarried extends Fault {}

/** What a provider threw, told apart: a 400 that no upstream gave is about what its wire cannot carry. */
export const asUncarried = (thrown: unknown): unknown =>
  thrown instanceof Fault &&
  thrown.failure === 'invalid_request' &&
  !(thrown instanceof UpstreamFault) &&
  !(thrown instanceof Uncarried)
    ? new Uncarried(thrown.failure, thrown.message, { cause: thrown })
    : thrown
