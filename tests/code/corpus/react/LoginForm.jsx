import { useState } from 'react';
import { useNavigate } from 'react-router-dom';

export default function LoginForm({ onLogin, busy = false, ...rest }) {
  const [values, setValues] = useState({ email: '', password: '' });
  const [message, setMessage] = useState('');
  const navigate = useNavigate();

  const change = (event) => {
    const { name, value } = event.target;
    setValues((old) => ({ ...old, [name]: value }));
  };

  async function submit(event) {
    event.preventDefault();
    if (!values.email || !values.password) {
      setMessage('Please fill in both fields.');
      return;
    }
    try {
      await onLogin(values);
      navigate('/');
    } catch (error) {
      setMessage(error.message);
    }
  }

  return (
    <form onSubmit={submit} {...rest}>
      <label>
        E-mail
        <input name="email" type="email" value={values.email} onChange={change} />
      </label>
      <label>
        Password
        <input name="password" type="password" value={values.password} onChange={change} />
      </label>
      {message && <p className="error">{message}</p>}
      <>
        <button type="submit" disabled={busy}>
          {busy ? 'One moment…' : 'Log in'}
        </button>
        {/* a link for those who forgot it */}
        <a href="/reset">Forgot it?</a>
      </>
    </form>
  );
}
