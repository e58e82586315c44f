/**
 * Starts Swagger UI. `payments docs` passes a token in the fragment of the address, which a browser
 * sends to no server. The token is removed from the address bar first, and is stored nowhere.
 */
const token = new URLSearchParams(location.hash.slice(1)).get('token');
if (token !== null) history.replaceState(null, '', location.pathname);

const choice = document.querySelector('#document');
const tokenState = document.querySelector('#token');

const show = (url) => {
  const ui = window.SwaggerUIBundle({
    url,
    dom_id: '#swagger-ui',
    validatorUrl: null,
    defaultModelsExpandDepth: 0,
    displayRequestDuration: true,
    tryItOutEnabled: true,
    onComplete: () => {
      if (token === null) return;
      ui.preauthorizeApiKey('bearer', token);
      tokenState.textContent = 'Token filled in';
    },
  });
};

tokenState.textContent = token === null ? 'With a token: npx payments docs' : '';
choice.addEventListener('change', () => show(choice.value));
show(choice.value);
