// Returns the AuthError that a promise or function fails with. Any other result fails the test.
import { expect } from 'chai'
import { AuthError } from '../../../client/errors.ts'

/** It must end in an AuthError that says what to do, without raw control characters. */
export async function authErrorOf(work: () => unknown): Promise<AuthError> {
  let thrown: unknown
  try {
    await work()
  } catch (error) {
    thrown = error
  }
  if (!AuthError.is(thrown)) expect.fail(`expected an AuthError, got ${String(thrown)}`)
  expect(thrown.name).to.equal('UnauthorizedError')
  // biome-ignore lint/suspicious/noControlCharactersInRegex: it is what must not be there.
  expect(thrown.message).not.to.match(/[\u0000-\u001f\u007f-\u009f\u202e]/)
  return thrown
}
