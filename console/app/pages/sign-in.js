/** Where a reader without a token pastes one. */
import { useState } from 'preact/hooks';
import { html } from '../html.js';
import { openSession } from '../session.js';

export const SignIn = () => {
  const [wrong, setWrong] = useState(false);
  /** @param {SubmitEvent} event */
  const submit = (event) => {
    event.preventDefault();
    const form = new FormData(/** @type {HTMLFormElement} */ (event.currentTarget));
    setWrong(!openSession(String(form.get('token')), form.get('keep') === 'on'));
  };
  return html`<h1>Payments console</h1>
    <p>The history of every payment, from the events themselves. The console asks with your token, and shows what that token may see.</p>
    <form class="sign-in" onSubmit=${submit}>
      <label for="token">Token</label>
      <textarea id="token" name="token" rows="4" required autocomplete="off" spellcheck=${false} autofocus
        aria-describedby="how" aria-invalid=${wrong}></textarea>
      ${wrong && html`<p class="problem" role="alert">This text is no token. A token has three parts with dots between them.</p>`}
      <p><label><input type="checkbox" name="keep" /> Keep it in this tab, so that a reload does not ask again</label></p>
      <button type="submit">Open</button>
    </form>
    <div id="how">
      <h2>Where a token comes from</h2>
      <p>From a terminal, for an auditor, an operator or a merchant:</p>
      <pre tabindex="0">npx payments console                  # prints this page's address with a token in it
npx payments console --as merchant --merchant m_demo
npx payments token --merchant '*' --scope 'audit:read'</pre>
      <p>The token stays in the memory of this page. <a href="/docs">The API and its documents</a> need the same one.</p>
    </div>`;
};
