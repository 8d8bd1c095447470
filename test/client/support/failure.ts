// Expects that a step ends with an AuthError.
import { expect } from 'chai'
import { AuthError } from '../../../client/errors.ts'

/** Resolves to the error; fails when the work succeeds or throws anything else. Every error must say what to do. */
export async function failure(work: Promise<unknown>): Promise<AuthError> {
  const thrown = await work.then(
    value => expect.fail(`no error, but ${JSON.stringify(value)}`),
    (error: unknown) => error,
  )
  if (!(thrown instanceof AuthError)) throw thrown
  expect(thrown.name).to.equal('UnauthorizedError')
  if (thrown.code !== 'aborted') expect(thrown.fix, thrown.message).to.be.a('string').with.length.above(5)
  return thrown
}
