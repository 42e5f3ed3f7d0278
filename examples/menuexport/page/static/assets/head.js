/**
 * What must be right at the first paint: the language, who is signed in, and whether there is a
 * desk or a door.
 *
 * @module
 */

import { at, write } from './dom.js'
import './lang.js'
import { account, signOut, wantsSignIn } from './session.js'

/** Somebody is signed in, and wants to work. */
export const working = !!account && !wantsSignIn

at('account').hidden = at('sign-out').hidden = !account
at('switch-account').hidden = !working
at('desk').hidden = !working
at('sign-in').hidden = working
write(at('account-name'), account)
at('sign-out').addEventListener('click', async () => {
  await signOut()
  location.href = '/?sign-in'
})
